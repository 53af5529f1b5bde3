"""REST and SMB on one file at once: who has what open decides, whichever protocol asks."""

import threading

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.storage.fileshare import ContentSettings, ShareLeaseClient

from harness import Server, refused
from smb_share import (
    ALL, CREATE, DELETE, DELETE_ON_CLOSE, DIRECTORY, OPEN, READ, READ_ATTRIBUTES, SHARE_ALL, WRITE, SmbClient, changes, client,
    denied, name, share,
)

SHARE_MASKS = range(8)
ACCESSES = {"attributes": READ_ATTRIBUTES, "read": READ, "write": WRITE, "delete": DELETE, "all": READ | WRITE | DELETE}
# What each REST operation needs of the share mask of an SMB open: read 1, write 2, delete 4.
NEEDS = {"create": 2 | 4, "get": 1, "list ranges": 1, "put range": 2, "set properties": 2, "set metadata": 2}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("smb") / "data"
    server = Server(folder, "--smb-port", "0", "--create", "share:data").start()
    yield server
    assert server.stop() == 0, server.log.read_text()


@pytest.fixture
def file(share, name):
    file = share.get_file_client(name)
    file.upload_file(b"0123456789")
    return file


def operations(file):
    return {
        "create": lambda: file.create_file(10),
        "get": lambda: file.download_file().readall(),
        "list ranges": lambda: list(file.list_ranges()),
        "put range": lambda: file.upload_range(b"x", 0, 1),
        "set properties": lambda: file.set_http_headers(ContentSettings(), file_attributes="Archive"),
        "set metadata": lambda: file.set_file_metadata({"a": "b"}),
    }


@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize("mask", SHARE_MASKS)
def test_share_masks(client, file, name, mask, access):
    """The table that Azure publishes: an open without access stands in nobody's way, any handle keeps Delete out."""
    held = client.open(name, ACCESSES[access], mask)
    for operation, run in operations(file).items():
        admitted = access == "attributes" or mask & NEEDS[operation] == NEEDS[operation]
        if admitted:
            run()
        else:
            with refused(409, "SharingViolation"):
                run()
    file.get_file_properties()
    with refused(409, "SharingViolation"):
        file.delete_file()
    lease = ShareLeaseClient(file)
    if access == "attributes" or (mask == SHARE_ALL and access == "read"):
        lease.acquire()
        lease.release()
    else:
        with refused(409, "SharingViolation"):
            lease.acquire()
    held.close()
    for run in operations(file).values():
        run()
    file.delete_file()


def test_locks_inside_and_outside_the_range(client, file, name):
    held = client.open(name)
    held.lock_range(2, 3)
    with refused(409, "FileLockConflict"):
        file.upload_range(b"xx", 1, 2)
    with refused(409, "FileLockConflict"):
        file.download_file(offset=4, length=2).readall()
    file.upload_range(b"xx", 0, 2)
    file.upload_range(b"xx", 5, 2)
    assert file.download_file(offset=5, length=5).readall() == b"xx789"
    held.unlock(2, 3)
    held.lock_range(2, 3, exclusive=False)
    assert file.download_file().readall() == b"xx234xx789"
    with refused(409, "FileLockConflict"):
        file.upload_range(b"x", 3, 1)
    held.close()
    file.upload_range(b"x", 3, 1)


def listed(share):
    return [entry.name for entry in share.list_directories_and_files()]


def test_delete_pending(client, share, file, name):
    first, second = client.open(name), client.open(name)
    first.delete()
    for run in [*operations(file).values(), file.get_file_properties, file.delete_file]:
        with refused(409, "SMBDeletePending"):
            run()
    assert name not in listed(share)
    assert name in client.names()
    second.delete(False)
    assert name in listed(share)
    assert file.download_file().readall() == b"0123456789"
    second.delete()
    first.close()
    with refused(409, "SMBDeletePending"):
        file.get_file_properties()
    second.close()
    with refused(404, "ResourceNotFound", ResourceNotFoundError):
        file.get_file_properties()


def test_delete_on_close_with_one_and_two_handles(client, share, file, name):
    first, second = client.open(name, options=DELETE_ON_CLOSE), client.open(name)
    assert file.download_file().readall() == b"0123456789", "it is not pending before its handle closes"
    first.close()
    with refused(409, "SMBDeletePending"):
        file.get_file_properties()
    second.close()
    with refused(404, "ResourceNotFound", ResourceNotFoundError):
        file.get_file_properties()
    file.upload_file(b"again")
    client.open(name, options=DELETE_ON_CLOSE).close()
    assert name not in listed(share)


@pytest.mark.parametrize("access", ACCESSES)
def test_a_lease_against_each_access(client, file, name, access):
    lease = ShareLeaseClient(file)
    lease.acquire()
    if access in ("attributes", "read"):
        client.open(name, ACCESSES[access]).close()
    else:
        with denied("SHARING_VIOLATION"):
            client.open(name, ACCESSES[access])
    lease.release()
    client.open(name, ACCESSES[access]).close()


def test_a_rename_above_an_open_file(client, share, name):
    directory = share.create_directory(name)
    directory.upload_file("x", b"x")
    held = client.open(f"{name}\\x", READ)
    with pytest.raises(HttpResponseError) as caught:
        directory.rename_directory(f"{name}-2")
    assert caught.value.status_code == 409, caught.value
    held.close()
    directory.rename_directory(f"{name}-2")
    assert client.get(f"{name}-2\\x") == b"x"


def test_list_handles_and_force_close(client, file, name):
    held = client.open(name, share=0)
    handles = list(file.list_handles())
    assert [handle.path for handle in handles] == [name]
    with denied("SHARING_VIOLATION"):
        client.open(name)
    assert file.close_handle(handles[0])["closed_handles_count"] == 1
    assert list(file.list_handles()) == []
    with denied("FILE_CLOSED"):
        held.read(0, 1)
    client.open(name, share=0).close()
    held = client.open(name, options=DELETE_ON_CLOSE)
    assert file.close_all_handles()["closed_handles_count"] == 1


def test_changes_of_one_are_seen_by_the_other(client, share, file, name):
    etag = file.get_file_properties().etag
    opened = client.open(name)
    opened.write(b"abc", 10)
    assert file.download_file().readall() == b"0123456789abc"
    assert file.get_file_properties().etag != etag
    file.upload_range(b"X", 0, 1)
    assert opened.read(0, 3) == b"X12"
    file.resize_file(2)
    assert opened.read(0, 100) == b"X1"
    opened.rename(f"{name}-moved")
    assert f"{name}-moved" in listed(share) and name not in listed(share)
    opened.close()


def test_rest_changes_reach_a_watcher(client, share, name):
    share.create_directory(name)
    directory = client.open(name, READ, options=DIRECTORY)
    watcher = directory.watch()
    share.get_directory_client(name).upload_file("new", b"x")
    assert changes(watcher) == [(1, "new")]
    watcher = directory.watch()
    share.get_file_client(f"{name}/new").rename_file(f"{name}/newer")
    assert changes(watcher) == [(4, "new"), (5, "newer")]
    watcher = directory.watch()
    share.get_file_client(f"{name}/newer").delete_file()
    assert changes(watcher) == [(2, "newer")]
    directory.close()


def test_no_smb_open_fails_for_a_rest_request_at_work(client, file, name):
    """SMB waits for REST requests; REST requests that meet the handle are refused, and nothing else happens."""
    stop, odd = threading.Event(), []

    def write():
        while not stop.is_set():
            try:
                file.upload_range(b"y", 0, 1)
            except HttpResponseError as error:
                if (error.status_code, error.error_code) != (409, "SharingViolation"):
                    odd.append(error)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(60):
        client.open(name, ALL, 0).close()
    stop.set()
    for thread in threads:
        thread.join()
    assert odd == []


def test_a_share_that_is_deleted(server, client):
    shares = server.shares()
    shares.create_share("gone").get_file_client("a").upload_file(b"x")
    inside = SmbClient(server, "gone")
    held = inside.open("a", READ)
    shares.delete_share("gone")
    with denied("NETWORK_NAME_DELETED"):
        held.read(0, 1)
    with denied("NETWORK_NAME_DELETED"):
        inside.open("b", disposition=CREATE)
    inside.close()
    with denied("BAD_NETWORK_NAME"):
        SmbClient(server, "gone")
