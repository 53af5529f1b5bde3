"""Copies inside of the server, sparse files and previous versions over SMB, and what REST sees of them."""

import os
import struct
import time

import pytest
from smbprotocol.create_contexts import CreateContextName, SMB2CreateContextRequest, SMB2CreateTimewarpToken
from smbprotocol.exceptions import SMBResponseException
from smbprotocol.ioctl import IOCTLFlags, SMB2IOCTLRequest, SMB2IOCTLResponse
from smbprotocol.open import FileAttributes, ImpersonationLevel
from smbprotocol.tree import TreeConnect

from harness import Server
from smb_share import (
    ALL, CREATE, FILE, OPEN, OVERWRITE_IF, READ, READ_ATTRIBUTES, SHARE_ALL, STATUS, WRITE, SmbClient, SmbFile, client,
    denied, name, share,
)

RESUME_KEY, COPYCHUNK, COPYCHUNK_WRITE, SNAPSHOTS = 0x140078, 0x1440F2, 0x1480F2, 0x144064
SET_SPARSE, SET_ZERO_DATA, ALLOCATED_RANGES, DUPLICATE_EXTENTS = 0x900C4, 0x980C8, 0x940CF, 0x98344
SPARSE = 0x200
MIB = 1 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("smb") / "data"
    server = Server(folder, "--smb-port", "0", "--create", "share:data,share:more").start()
    yield server
    assert server.stop() == 0, server.log.read_text()


def message(kind):
    """A message that may have any code: smbprotocol does not know all of them."""
    made = kind()
    made.fields["ctl_code"].enum_strict = False
    return made


def control(file, code, data=b"", output=4096):
    """One IOCTL, and its output."""
    request = message(SMB2IOCTLRequest)
    request["ctl_code"] = code
    request["file_id"] = file.file_id
    request["max_output_response"] = output
    request["flags"] = IOCTLFlags.SMB2_0_IOCTL_IS_FSCTL
    request["buffer"] = data
    return file._send(request, lambda: message(SMB2IOCTLResponse))["buffer"].get_value()


def key_of(file):
    return control(file, RESUME_KEY, output=32)[:24]


def chunks(key, *ranges):
    return key + struct.pack("<II", len(ranges), 0) + b"".join(struct.pack("<QQII", *part, 0) for part in ranges)


def counts(buffer):
    return struct.unpack("<III", buffer)


def refused_copy(file, data):
    """The status of a copy that fails, and the numbers that come with it."""
    with pytest.raises(SMBResponseException) as caught:
        control(file, COPYCHUNK, data, 12)
    answer = SMB2IOCTLResponse()
    answer.unpack(caught.value.header["data"].get_value())
    return caught.value.status, counts(answer["buffer"].get_value())


def open_in(client, snapshot, name, access=READ | READ_ATTRIBUTES, disposition=OPEN):
    """Opens something in the snapshot that REST has taken."""
    token = SMB2CreateTimewarpToken()
    seconds = time.strptime(snapshot[:19], "%Y-%m-%dT%H:%M:%S")
    token["timestamp"] = struct.pack("<q", (int(time.mktime(seconds) - time.timezone) + 11644473600) * 10**7)
    context = SMB2CreateContextRequest()
    context["buffer_name"] = CreateContextName.SMB2_CREATE_TIMEWARP_TOKEN
    context["buffer_data"] = token
    opened = SmbFile(client.tree, name)
    opened.create(
        ImpersonationLevel.Impersonation, access, FileAttributes.FILE_ATTRIBUTE_NORMAL, SHARE_ALL, disposition, 0,
        create_contexts=[context],
    )
    return opened


def size_of(folder):
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file())


def test_a_copy_moves_no_bytes(server, client, share, name):
    content = os.urandom(24 * MIB + 5)
    share.get_file_client(f"{name}-from").upload_file(content)
    source = client.open(f"{name}-from", READ)
    target = client.open(name, disposition=CREATE, options=FILE)
    before, taken = share.get_file_client(name).get_file_properties(), size_of(server.folder)
    key = key_of(source)
    parts = [(at, at, min(MIB, len(content) - at)) for at in range(0, len(content), MIB)]
    assert counts(control(target, COPYCHUNK, chunks(key, *parts[:16]), 12)) == (16, 0, 16 * MIB)
    assert counts(control(target, COPYCHUNK, chunks(key, *parts[16:]), 12)) == (9, 0, 8 * MIB + 5)
    assert size_of(server.folder) < taken + 12 * MIB, "the copy was stored"
    after = share.get_file_client(name).get_file_properties()
    assert (after.size, after.etag != before.etag) == (len(content), True)
    assert share.get_file_client(name).download_file().readall() == content
    assert [(part.start, part.end) for part in share.get_file_client(name).list_ranges()] == [(0, len(content) - 1)]
    # Each goes its own way.
    source.close()
    share.get_file_client(f"{name}-from").delete_file()
    target.write(b"changed", 5)
    assert share.get_file_client(name).download_file().readall() == content[:5] + b"changed" + content[12:]
    target.close()


def test_limits_and_progress(client, name):
    client.put(f"{name}-from", b"0123456789")
    source, target = client.open(f"{name}-from", READ), client.open(name, disposition=CREATE, options=FILE)
    key, limits = key_of(source), (256, MIB, 16 * MIB)
    assert refused_copy(target, chunks(key, (0, 0, MIB + 1))) == (STATUS["INVALID_PARAMETER"], limits)
    assert refused_copy(target, chunks(key, *[(0, 0, 1)] * 257)) == (STATUS["INVALID_PARAMETER"], limits)
    assert refused_copy(target, chunks(key, (0, 0, 5), (5, 5, 6))) == (STATUS["INVALID_VIEW_SIZE"], (1, 0, 5))
    assert client.get(name) == b"01234"
    locker = client.open(f"{name}-from", READ)
    locker.lock_range(3, 1)
    assert refused_copy(target, chunks(key, (0, 0, 2), (2, 2, 2))) == (STATUS["FILE_LOCK_CONFLICT"], (1, 0, 2))
    with denied("OBJECT_NAME_NOT_FOUND"):
        control(target, COPYCHUNK, chunks(b"k" * 24, (0, 0, 1)), 12)
    blind = client.open(name, WRITE)
    with denied("ACCESS_DENIED"):
        control(blind, COPYCHUNK, chunks(key, (0, 0, 1)), 12)
    assert counts(control(blind, COPYCHUNK_WRITE, chunks(key, (0, 0, 1)), 12)) == (1, 0, 1)
    for file in (source, target, locker, blind):
        file.close()


def test_from_share_to_share(server, client, name):
    client.put(name, b"0123456789")
    source = client.open(name, READ)
    more = SmbClient(server, "more")
    other = more.open(name, disposition=CREATE, options=FILE)
    with denied("OBJECT_NAME_NOT_FOUND"):  # a key of another session
        control(other, COPYCHUNK, chunks(key_of(source), (0, 0, 10)), 12)
    more.close()
    tree = TreeConnect(client.session, r"\\127.0.0.1\more")
    tree.connect()
    target = SmbFile(tree, f"{name}-2")
    target.create(ImpersonationLevel.Impersonation, ALL, FileAttributes.FILE_ATTRIBUTE_NORMAL, SHARE_ALL, CREATE, FILE)
    assert counts(control(target, COPYCHUNK, chunks(key_of(source), (0, 3, 10)), 12)) == (1, 0, 10)
    assert target.read(0, 100) == b"\0\0\x000123456789"
    target.close()
    source.close()
    tree.disconnect()


def test_sparse_files(client, share, name):
    file = client.open(name, disposition=CREATE, options=FILE)
    file.write(os.urandom(64 * 1024), 0)
    file.truncate(4 * MIB)
    assert struct.unpack("<QQ", control(file, ALLOCATED_RANGES, struct.pack("<QQ", 0, 8 * MIB))) == (0, 4 * MIB)
    control(file, SET_SPARSE)
    assert file.basic()["file_attributes"].get_value() & SPARSE
    rest = share.get_file_client(name)
    assert "Sparse" not in rest.get_file_properties().file_attributes
    file.write(b"x" * 512, 2 * MIB)
    control(file, SET_ZERO_DATA, struct.pack("<QQ", 4096, 32768))
    expected = [(0, 4096), (32768, 32768), (2 * MIB, 512)]
    found = control(file, ALLOCATED_RANGES, struct.pack("<QQ", 0, 8 * MIB))
    assert list(struct.iter_unpack("<QQ", found)) == expected
    assert [(part.start, part.end - part.start + 1) for part in rest.list_ranges()] == expected
    control(file, SET_SPARSE, b"\0")
    assert not file.basic()["file_attributes"].get_value() & SPARSE
    file.close()


def test_extents(client, share, name):
    content = os.urandom(3 * MIB)
    client.put(f"{name}-from", content)
    source, target = client.open(f"{name}-from", READ), client.open(name, disposition=CREATE, options=FILE)
    target.truncate(3 * MIB)
    data = source.file_id + struct.pack("<QQQ", MIB, 0, 2 * MIB)
    assert control(target, DUPLICATE_EXTENTS, data, 0) == b""
    assert share.get_file_client(name).download_file().readall() == content[MIB:] + b"\0" * MIB
    # The volume says that it can.
    assert struct.unpack("<I", target.query_raw(2, 5)[:4])[0] & 0x08000000
    source.close()
    target.close()


def test_previous_versions(server, client, share, name):
    share.create_directory(name)
    file = share.get_directory_client(name).get_file_client("a.txt")
    file.upload_file(b"before")
    snapshot = share.create_snapshot()["snapshot"]
    token = time.strftime("@GMT-%Y.%m.%d-%H.%M.%S", time.strptime(snapshot[:19], "%Y-%m-%dT%H:%M:%S"))
    file.upload_range(b"after!", 0, 6)
    share.get_directory_client(name).get_file_client("new").create_file(1)

    directory = client.open(name)
    number, _, size = struct.unpack("<III", control(directory, SNAPSHOTS, output=16)[:12])
    listed = control(directory, SNAPSHOTS, output=12 + size)
    assert struct.unpack("<II", listed[:8]) == (number, number)
    assert token in listed[12:].decode("utf-16-le").split("\0")
    directory.close()

    assert client.get(rf"{name}\a.txt") == b"after!"
    old = open_in(client, snapshot, rf"{name}\a.txt")
    assert old.read(0, 100) == b"before"
    assert client.get(rf"{token}\{name}\a.txt") == b"before"
    assert client.names(rf"{token}\{name}") == ["a.txt"]
    assert sorted(client.names(name)) == ["a.txt", "new"]
    file.delete_file()  # nobody has it open
    assert old.read(0, 100) == b"before"

    writer = open_in(client, snapshot, rf"{name}\a.txt", ALL)
    with denied("MEDIA_WRITE_PROTECTED"):
        writer.write(b"x", 0)
    with denied("MEDIA_WRITE_PROTECTED"):
        writer.delete()
    with denied("MEDIA_WRITE_PROTECTED"):
        open_in(client, snapshot, rf"{name}\b.txt", ALL, OVERWRITE_IF)
    with denied("OBJECT_NAME_NOT_FOUND"):
        open_in(client, "2001-01-01T00:00:00.0000000Z", rf"{name}\a.txt")

    # Restored inside of the server.
    target = client.open(rf"{name}\a.txt", disposition=CREATE, options=FILE)
    assert counts(control(target, COPYCHUNK, chunks(key_of(old), (0, 0, 6)), 12)) == (1, 0, 6)
    target.close()
    assert file.download_file().readall() == b"before"

    server.shares().get_share_client("data", snapshot=snapshot).delete_share()
    with denied("FILE_INVALID"):
        old.read(0, 100)
    old.close()
    writer.close()
