"""A share over SMB through smbprotocol, with every bit of a request in the hands of the test."""

import uuid
from contextlib import contextmanager

import pytest
from smbprotocol.change_notify import ChangeNotifyFlags, CompletionFilter, FileSystemWatcher
from smbprotocol.connection import Connection, Dialects
from smbprotocol.exceptions import SMBResponseException
from smbprotocol.file_info import (
    FileBasicInformation, FileDispositionInformation, FileEndOfFileInformation, FileInformationClass, FileRenameInformation,
    InfoType,
)
from smbprotocol.open import (
    CreateDisposition, CreateOptions, FileAttributes, ImpersonationLevel, LockFlags, Open, SMB2LockElement,
    SMB2QueryInfoRequest, SMB2QueryInfoResponse, SMB2SetInfoRequest,
)
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect

from harness import ACCOUNT, KEY

READ, WRITE, APPEND, DELETE = 0x1, 0x2, 0x4, 0x10000
READ_ATTRIBUTES, WRITE_ATTRIBUTES, READ_CONTROL, WRITE_DAC, WRITE_OWNER = 0x80, 0x100, 0x20000, 0x40000, 0x80000
ALL = 0x1F01FF
SHARE_ALL = 7

OPEN, CREATE, OPEN_IF = CreateDisposition.FILE_OPEN, CreateDisposition.FILE_CREATE, CreateDisposition.FILE_OPEN_IF
OVERWRITE, OVERWRITE_IF = CreateDisposition.FILE_OVERWRITE, CreateDisposition.FILE_OVERWRITE_IF
SUPERSEDE = CreateDisposition.FILE_SUPERSEDE
DIRECTORY, FILE = CreateOptions.FILE_DIRECTORY_FILE, CreateOptions.FILE_NON_DIRECTORY_FILE
DELETE_ON_CLOSE = CreateOptions.FILE_DELETE_ON_CLOSE

STATUS = {
    "END_OF_FILE": 0xC0000011, "INVALID_PARAMETER": 0xC000000D, "NO_SUCH_FILE": 0xC000000F, "ACCESS_DENIED": 0xC0000022,
    "OBJECT_NAME_INVALID": 0xC0000033, "OBJECT_NAME_NOT_FOUND": 0xC0000034, "OBJECT_NAME_COLLISION": 0xC0000035,
    "OBJECT_PATH_NOT_FOUND": 0xC000003A, "SHARING_VIOLATION": 0xC0000043, "FILE_LOCK_CONFLICT": 0xC0000054,
    "LOCK_NOT_GRANTED": 0xC0000055, "DELETE_PENDING": 0xC0000056, "LOGON_FAILURE": 0xC000006D, "RANGE_NOT_LOCKED": 0xC000007E,
    "DISK_FULL": 0xC000007F, "FILE_IS_A_DIRECTORY": 0xC00000BA, "BAD_NETWORK_NAME": 0xC00000CC,
    "DIRECTORY_NOT_EMPTY": 0xC0000101, "NOT_A_DIRECTORY": 0xC0000103, "CANCELLED": 0xC0000120, "CANNOT_DELETE": 0xC0000121,
    "FILE_CLOSED": 0xC0000128, "USER_SESSION_DELETED": 0xC0000203, "INVALID_INFO_CLASS": 0xC0000003,
    "INVALID_DEVICE_REQUEST": 0xC0000010, "NO_MORE_FILES": 0x80000006, "NETWORK_NAME_DELETED": 0xC00000C9,
    "INVALID_VIEW_SIZE": 0xC000001F, "FILE_INVALID": 0xC0000098, "MEDIA_WRITE_PROTECTED": 0xC00000A2,
}


@contextmanager
def denied(name):
    """The block must fail with exactly this status."""
    with pytest.raises(SMBResponseException) as caught:
        yield
    assert caught.value.status == STATUS[name], f"{caught.value.status:#010x} and not {name}"


class SmbClient:
    """One client: a connection, a session, a tree."""

    def __init__(self, server, share, dialect=Dialects.SMB_3_1_1, encrypt=True, user=ACCOUNT, key=KEY):
        self.connection = Connection(uuid.uuid4(), "127.0.0.1", server.smb_port, require_signing=True)
        self.connection.connect(dialect=dialect, timeout=30)
        self.session = Session(self.connection, user, key, require_encryption=encrypt, auth_protocol="ntlm")
        self.session.connect()
        self.tree = TreeConnect(self.session, rf"\\127.0.0.1\{share}")
        self.tree.connect()

    def close(self):
        self.connection.disconnect(True)

    def open(self, name, access=ALL, share=SHARE_ALL, disposition=OPEN, options=0, attributes=FileAttributes.FILE_ATTRIBUTE_NORMAL):
        opened = SmbFile(self.tree, name)
        opened.create(ImpersonationLevel.Impersonation, access, attributes, share, disposition, options)
        return opened

    def put(self, name, content=b""):
        file = self.open(name, disposition=OVERWRITE_IF, options=FILE)
        for start in range(0, len(content), 1 << 20):
            file.write(content[start : start + (1 << 20)], start)
        file.close()

    def get(self, name):
        file = self.open(name, READ | READ_ATTRIBUTES)
        content = b""
        while len(content) < file.end_of_file:
            content += file.read(len(content), min(1 << 20, file.end_of_file - len(content)))
        file.close()
        return content

    def mkdir(self, name):
        self.open(name, disposition=CREATE, options=DIRECTORY).close()

    def names(self, directory="", pattern="*"):
        opened = self.open(directory, READ, options=DIRECTORY)
        found = []
        while True:
            try:
                entries = opened.query_directory(pattern, FileInformationClass.FILE_NAMES_INFORMATION)
            except SMBResponseException as error:
                assert error.status in (STATUS["NO_MORE_FILES"], STATUS["NO_SUCH_FILE"])
                break
            found += [entry["file_name"].get_value().decode("utf-16-le") for entry in entries]
        opened.close()
        return [name for name in found if name not in (".", "..")]


class SmbFile(Open):
    """An open with the calls that smbprotocol leaves to its user."""

    def _send(self, request, answer=None):
        sent = self.connection.send(request, self.tree_connect.session.session_id, self.tree_connect.tree_connect_id)
        response = self.connection.receive(sent)
        if answer is None:
            return None
        unpacked = answer()
        unpacked.unpack(response["data"].get_value())
        return unpacked

    def set(self, information):
        request = SMB2SetInfoRequest()
        request["info_type"] = InfoType.SMB2_0_INFO_FILE
        request["file_info_class"] = information.INFO_CLASS
        request["file_id"] = self.file_id
        request["buffer"] = information.pack()
        self._send(request)

    def query_raw(self, kind, number, additional=0, output=65536):
        request = SMB2QueryInfoRequest()
        request["info_type"] = kind
        request["file_info_class"] = number
        request["additional_information"] = additional
        request["output_buffer_length"] = output
        request["file_id"] = self.file_id
        return self._send(request, SMB2QueryInfoResponse)["buffer"].get_value()

    def set_raw(self, kind, number, buffer, additional=0):
        request = SMB2SetInfoRequest()
        request["info_type"] = kind
        request["file_info_class"] = number
        request["additional_information"] = additional
        request["file_id"] = self.file_id
        request["buffer"] = buffer
        self._send(request)

    def delete(self, pending=True):
        information = FileDispositionInformation()
        information["delete_pending"] = pending
        self.set(information)

    def rename(self, name, replace=False):
        information = FileRenameInformation()
        information["replace_if_exists"] = replace
        information["file_name"] = name
        self.set(information)

    def truncate(self, length):
        information = FileEndOfFileInformation()
        information["end_of_file"] = length
        self.set(information)

    def basic(self):
        information = FileBasicInformation()
        information.unpack(self.query_raw(InfoType.SMB2_0_INFO_FILE, information.INFO_CLASS))
        return information

    def lock_range(self, offset, length, exclusive=True, wait=False):
        self.lock([element(offset, length, exclusive, wait)])

    def unlock(self, offset, length):
        self.lock([element(offset, length, None, False)])

    def watch(self, filter=CompletionFilter.FILE_NOTIFY_CHANGE_FILE_NAME, recursive=False):
        watcher = FileSystemWatcher(self)
        watcher.start(filter, ChangeNotifyFlags.SMB2_WATCH_TREE if recursive else 0)
        return watcher


def element(offset, length, exclusive, wait):
    one = SMB2LockElement()
    one["offset"] = offset
    one["length"] = length
    if exclusive is None:
        one["flags"] = LockFlags.SMB2_LOCKFLAG_UNLOCK
    else:
        kind = LockFlags.SMB2_LOCKFLAG_EXCLUSIVE_LOCK if exclusive else LockFlags.SMB2_LOCKFLAG_SHARED_LOCK
        one["flags"] = kind | (0 if wait else LockFlags.SMB2_LOCKFLAG_FAIL_IMMEDIATELY)
    return one


def changes(watcher):
    """What a watcher was told: pairs of action and name."""
    return [(entry["action"].get_value(), entry["file_name"].get_value()) for entry in watcher.wait()]


# Fixtures of modules that have a fixture `server` with the share `data`.


@pytest.fixture(scope="module")
def client(server):
    client = SmbClient(server, "data")
    yield client
    client.close()


@pytest.fixture
def share(server):
    return server.shares().get_share_client("data")


@pytest.fixture
def name(request):
    """A name that no other test of this server has."""
    made = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return made[:100]
