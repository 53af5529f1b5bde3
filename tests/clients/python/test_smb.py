"""Files over SMB through smbprotocol: every dialect, two clients at once, locks, deletes, notifications, properties."""

import os
import threading

import pytest
from smbprotocol.change_notify import CompletionFilter
from smbprotocol.connection import Dialects
from smbprotocol.exceptions import SMBException
from smbprotocol.file_info import InfoType
from smbprotocol.open import FileAttributes

from harness import Server
from smb_share import (
    ALL, APPEND, CREATE, DELETE, DELETE_ON_CLOSE, DIRECTORY, FILE, OPEN, OPEN_IF, OVERWRITE, OVERWRITE_IF, READ, READ_ATTRIBUTES,
    READ_CONTROL, SHARE_ALL, STATUS, SUPERSEDE, WRITE, WRITE_DAC, SmbClient, changes, denied, element,
)

MIB = 1 << 20


@pytest.fixture
def server(tmp_path):
    server = Server(tmp_path / "data", "--smb-port", "0", "--smb-encryption", "desired", "--create", "share:data").start()
    yield server
    assert server.stop() == 0, server.log.read_text()


@pytest.fixture
def client(server):
    client = SmbClient(server, "data")
    yield client
    client.close()


@pytest.fixture
def other(server):
    client = SmbClient(server, "data")
    yield client
    client.close()


@pytest.mark.parametrize("dialect", [Dialects.SMB_2_1_0, Dialects.SMB_3_0_0, Dialects.SMB_3_0_2, Dialects.SMB_3_1_1])
@pytest.mark.parametrize("encrypt", [False, True])
def test_every_dialect(server, dialect, encrypt):
    if encrypt and dialect == Dialects.SMB_2_1_0:
        pytest.skip("SMB 2.1 does not encrypt")
    client = SmbClient(server, "DATA", dialect, encrypt)
    content = os.urandom(3 * MIB + 17)
    client.mkdir("d")
    client.put("d\\a.bin", content)
    assert client.get("D\\A.BIN") == content
    assert client.names("d") == ["a.bin"]
    client.close()


def test_a_server_that_requires_encryption(tmp_path):
    server = Server(tmp_path / "data", "--smb-port", "0", "--create", "share:data").start()
    try:
        client = SmbClient(server, "data")
        client.put("a", b"x")
        assert client.get("a") == b"x"
        client.close()
        with pytest.raises(SMBException):
            SmbClient(server, "data", Dialects.SMB_2_1_0, encrypt=False)
    finally:
        assert server.stop() == 0


def test_who_is_let_in(server):
    with denied("LOGON_FAILURE"):
        SmbClient(server, "data", key="d3Jvbmc=")
    with denied("LOGON_FAILURE"):
        SmbClient(server, "data", user="nobody")
    with denied("BAD_NETWORK_NAME"):
        SmbClient(server, "other")
    SmbClient(server, "data", user="AZURE\\devstoreaccount1").close()


def test_dispositions(client):
    for disposition in (OPEN, OVERWRITE):
        with denied("OBJECT_NAME_NOT_FOUND"):
            client.open("a", disposition=disposition)
    with denied("OBJECT_PATH_NOT_FOUND"):
        client.open("no\\a", disposition=CREATE)
    client.put("a", b"1234")
    with denied("OBJECT_NAME_COLLISION"):
        client.open("A", disposition=CREATE)
    client.open("a", disposition=OPEN_IF).close()
    assert client.get("a") == b"1234"
    for disposition in (OVERWRITE, OVERWRITE_IF, SUPERSEDE):
        client.put("a", b"1234")
        client.open("a", disposition=disposition).close()
        assert client.get("a") == b""
    with denied("NOT_A_DIRECTORY"):
        client.open("a", options=DIRECTORY)
    client.mkdir("d")
    with denied("FILE_IS_A_DIRECTORY"):
        client.open("d", options=FILE)
    with denied("OBJECT_NAME_INVALID"):
        client.open("a:stream", disposition=CREATE)


def test_reads_and_writes(client):
    file = client.open("a", disposition=CREATE)
    file.write(b"0123456789", 0)
    file.write(b"xyz", 20)
    assert file.read(0, 100) == b"0123456789" + bytes(10) + b"xyz"
    with denied("END_OF_FILE"):
        file.read(23, 1)
    file.truncate(5)
    file.truncate(8)
    file.flush()
    assert file.read(0, 100) == b"01234\0\0\0"
    reader = client.open("a", READ)
    with denied("ACCESS_DENIED"):
        reader.write(b"x", 0)
    reader.close()
    with pytest.raises(SMBException):
        reader.read(0, 1)
    large = os.urandom(4 * MIB)
    file.write(large, 0)
    assert file.read(0, 4 * MIB) == large
    file.close()


def test_names_and_listings(client):
    names = [f"file {number:04}.txt" for number in range(1500)]
    for name in names[:40]:
        client.put(name)
    client.mkdir("Überordner")
    assert client.names() == names[:40] + ["Überordner"]
    assert client.names(pattern="*0003*") == ["file 0003.txt"]
    assert client.names(pattern="FILE 000?.TXT") == names[:10]
    assert client.names(pattern="nothing*") == []


def test_renames(client, other):
    client.put("a", b"a")
    client.put("b", b"b")
    client.mkdir("d")
    file = client.open("a")
    with denied("OBJECT_NAME_COLLISION"):
        file.rename("b")
    file.rename("d\\c")
    assert other.names("d") == ["c"]
    file.rename("B", replace=True)
    file.close()
    assert client.get("b") == b"a"
    inside = other.open("d", READ, options=DIRECTORY)
    inside.close()
    client.put("d\\x")
    held = other.open("d\\x", READ)
    directory = client.open("d", options=DIRECTORY)
    with denied("ACCESS_DENIED"):
        directory.rename("e")
    held.close()
    directory.rename("e")
    directory.close()
    assert client.names("e") == ["x"]


def test_share_modes(client, other):
    client.put("a", b"a")
    for held, share, asked, admitted in [
        (READ, 0, READ, False), (READ, 1, READ, True), (READ, 1, WRITE, False), (READ, 3, WRITE, True),
        (WRITE, 7, READ, True), (READ, 3, DELETE, False), (READ, 7, DELETE, True), (READ, 0, READ_ATTRIBUTES, True),
    ]:
        first = client.open("a", held, share)
        if admitted:
            other.open("a", asked).close()
        else:
            with denied("SHARING_VIOLATION"):
                other.open("a", asked)
        first.close()


def test_delete_on_close_and_disposition(client, other):
    client.put("a", b"a")
    first = client.open("a", options=DELETE_ON_CLOSE)
    second = other.open("a")
    first.close()
    with denied("DELETE_PENDING"):
        other.open("a")
    assert client.names() == ["a"], "SMB shows what is delete-pending"
    second.close()
    assert client.names() == []

    client.put("a", b"a")
    first, second = client.open("a"), other.open("a")
    first.delete()
    with denied("DELETE_PENDING"):
        other.open("a")
    second.delete(False)
    other.open("a").close()
    first.delete()
    first.close()
    second.close()
    with denied("OBJECT_NAME_NOT_FOUND"):
        client.open("a")

    client.mkdir("d")
    client.put("d\\x")
    directory = client.open("d", options=DIRECTORY)
    with denied("DIRECTORY_NOT_EMPTY"):
        directory.delete()
    directory.close()


def test_a_lost_connection_closes_its_files(server, client, other):
    client.put("a", b"a")
    client.open("a", share=0, options=DELETE_ON_CLOSE)
    with denied("SHARING_VIOLATION"):
        other.open("a")
    client.connection.transport.close()
    until(lambda: other.names() == [])


def until(condition):
    """Waits for what happens soon; a test that waits in vain ends by its time limit."""
    while not condition():
        threading.Event().wait(0.02)


def test_locks(client, other):
    client.put("a", bytes(100))
    first, second = client.open("a"), other.open("a")
    first.lock_range(10, 10)
    with denied("LOCK_NOT_GRANTED"):
        second.lock_range(15, 1)
    with denied("LOCK_NOT_GRANTED"):
        second.lock([element(50, 1, True, False), element(19, 5, False, False)])
    second.lock_range(50, 1)
    with denied("FILE_LOCK_CONFLICT"):
        second.write(b"x", 12)
    with denied("FILE_LOCK_CONFLICT"):
        second.read(0, 20)
    assert second.read(20, 10) == bytes(10)
    first.write(b"x", 12)
    with denied("RANGE_NOT_LOCKED"):
        first.unlock(10, 9)
    first.unlock(10, 10)
    second.write(b"x", 12)
    with denied("INVALID_PARAMETER"):
        first.lock([element(0, 1, True, True), element(2, 1, True, True)])


def test_a_lock_that_waits(client, other):
    client.put("a", bytes(100))
    first, second = client.open("a"), other.open("a")
    first.lock_range(0, 10)
    granted = threading.Event()

    def wait():
        second.lock_range(5, 10, wait=True)
        granted.set()

    thread = threading.Thread(target=wait)
    thread.start()
    # Other requests of the same connection go on meanwhile.
    for _ in range(5):
        assert second.read(50, 1) == b"\0"
    assert not granted.is_set()
    first.unlock(0, 10)
    thread.join()
    assert granted.is_set()
    with denied("LOCK_NOT_GRANTED"):
        first.lock_range(5, 1)


def test_a_waiting_lock_ends_with_its_handle(client, other):
    client.put("a", bytes(100))
    first, second = client.open("a"), other.open("a")
    first.lock_range(0, 10)
    request, receive = second.lock([element(0, 1, True, True)], send=False)
    session, tree = other.session.session_id, other.tree.tree_connect_id
    sent = other.connection.send(request, session, tree)
    until(lambda: sent.async_id is not None)
    sent.cancel()
    with denied("CANCELLED"):
        receive(sent)
    sent = other.connection.send(second.lock([element(0, 1, True, True)], send=False)[0], session, tree)
    until(lambda: sent.async_id is not None)
    second.close()
    with pytest.raises(SMBException):
        receive(sent)
    first.unlock(0, 10)
    first.lock_range(0, 10)


def test_notifications(client, other):
    client.mkdir("d")
    directory = client.open("d", READ, options=DIRECTORY)
    watcher = directory.watch()
    other.put("d\\new", b"x")
    assert changes(watcher) == [(1, "new")]
    watcher = directory.watch()
    file = other.open("d\\new")
    file.rename("d\\newer")
    file.close()
    assert changes(watcher) == [(4, "new"), (5, "newer")]
    watcher = directory.watch()
    file = other.open("d\\newer", options=DELETE_ON_CLOSE)
    file.close()
    assert changes(watcher) == [(2, "newer")]
    directory.close()

    directory = client.open("", READ, options=DIRECTORY)
    watcher = directory.watch(CompletionFilter.FILE_NOTIFY_CHANGE_FILE_NAME, recursive=True)
    other.put("d\\deep")
    assert changes(watcher) == [(1, "d\\deep")]


def test_attributes_and_times(client):
    file = client.open("a", disposition=CREATE, attributes=FileAttributes.FILE_ATTRIBUTE_HIDDEN)
    basic = file.basic()
    attributes = basic["file_attributes"].get_value()
    assert attributes & FileAttributes.FILE_ATTRIBUTE_HIDDEN and attributes & FileAttributes.FILE_ATTRIBUTE_ARCHIVE
    file.close()
    with denied("ACCESS_DENIED"):
        client.open("a", disposition=OVERWRITE)
    file = client.open("a")
    file.set_raw(InfoType.SMB2_0_INFO_FILE, 4, bytes(32) + (1).to_bytes(4, "little") + bytes(4))
    file.close()
    with denied("ACCESS_DENIED"):
        client.open("a", WRITE)
    with denied("CANNOT_DELETE"):
        client.open("a", DELETE | READ_ATTRIBUTES, options=DELETE_ON_CLOSE)


def test_information(client):
    client.put("a", bytes(5000))
    file = client.open("a")
    standard = file.query_raw(InfoType.SMB2_0_INFO_FILE, 5)
    assert int.from_bytes(standard[8:16], "little") == 5000
    assert int.from_bytes(standard[:8], "little") == 8192
    name = file.query_raw(InfoType.SMB2_0_INFO_FILE, 18)
    assert name[100:].decode("utf-16-le") == "\\a"
    volume = file.query_raw(InfoType.SMB2_0_INFO_FILESYSTEM, 5)
    assert volume[12:].decode("utf-16-le") == "NTFS"
    size = file.query_raw(InfoType.SMB2_0_INFO_FILESYSTEM, 3)
    assert int.from_bytes(size[:8], "little") > int.from_bytes(size[8:16], "little") > 0
    with denied("INVALID_INFO_CLASS"):
        file.query_raw(InfoType.SMB2_0_INFO_FILE, 32)
    streams = file.query_raw(InfoType.SMB2_0_INFO_FILE, 22)
    assert streams[24:38].decode("utf-16-le") == "::$DATA"


def test_security(client):
    client.put("a")
    file = client.open("a")
    descriptor = file.query_raw(InfoType.SMB2_0_INFO_SECURITY, 0, additional=7)
    assert descriptor[0] == 1 and len(descriptor) > 20
    file.set_raw(InfoType.SMB2_0_INFO_SECURITY, 0, descriptor, additional=7)
    assert file.query_raw(InfoType.SMB2_0_INFO_SECURITY, 0, additional=7) == descriptor
    weak = client.open("a", READ)
    with denied("ACCESS_DENIED"):
        weak.query_raw(InfoType.SMB2_0_INFO_SECURITY, 0, additional=7)


def test_many_requests_at_once(client):
    file = client.open("a", disposition=CREATE)
    session, tree = client.session.session_id, client.tree.tree_connect_id
    pieces = [bytes([number]) * 65536 for number in range(64)]
    sent = []
    for number, piece in enumerate(pieces):
        request, receive = file.write(piece, number * 65536, send=False)
        sent.append((client.connection.send(request, session, tree), receive))
    for request, receive in sent:
        assert receive(request) == 65536
    assert client.get("a") == b"".join(pieces)


def test_a_key_that_was_replaced(tmp_path):
    """The session that logged on with the old key ends, and its files are closed."""
    folder = tmp_path / "data"
    folder.mkdir()
    keys = ["b2xkIGtleSBvZiB0aGUgYWNjb3VudA==", "bmV3IGtleSBvZiB0aGUgYWNjb3VudA=="]
    config = folder / "lazurite.toml"
    config.write_text(f'[accounts.mine]\nkeys = ["{keys[0]}"]\n')
    server = Server(folder, "--smb-port", "0", "--create", "share:data").start()
    try:
        client = SmbClient(server, "data", user="mine", key=keys[0])
        client.open("a", disposition=CREATE, share=0)
        config.write_text(f'[accounts.mine]\nkeys = ["{keys[1]}"]\n')

        def is_free():
            try:
                new = SmbClient(server, "data", user="mine", key=keys[1])
            except SMBException:
                return False
            try:
                new.open("a", READ).close()
                return True
            except SMBException as error:
                assert error.status == STATUS["SHARING_VIOLATION"]
                return False
            finally:
                new.close()

        until(is_free)
        # Nobody can decrypt what the old session sends, so its connection ends.
        with pytest.raises(SMBException):
            client.open("a", READ)
    finally:
        assert server.stop() == 0
