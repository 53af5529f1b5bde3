"""Symbolic and hard links in a share for NFS, through azure-storage-file-share."""

from datetime import datetime, timezone
from urllib.parse import unquote

import pytest
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError

from harness import refused


@pytest.fixture
def nfs(server):
    share = server.shares().create_share("nfs", protocols="NFS")
    share.create_directory("dir")
    return share


def names(share, directory=""):
    return [entry["name"] for entry in share.list_directories_and_files(directory)]


def test_a_file_has_another_name_until_the_last_one_is_gone(nfs):
    file, link = nfs.get_file_client("file"), nfs.get_file_client("dir/link")
    file.create_file(1024)
    made = link.create_hardlink(target="file")
    assert (made["file_file_type"], made["owner"], made["group"], made["mode"], made["link_count"]) == ("Regular", "0", "0", "0664", 2)
    assert made["file_id"] == file.get_file_properties().file_id
    for name in ("file_creation_time", "file_last_write_time", "file_change_time", "file_parent_id", "etag", "last_modified"):
        assert made[name] is not None, name
    assert "file_attributes" not in made and "file_permission_key" not in made
    link.upload_range(b"x" * 512, 0, 512)
    assert file.download_file().readall() == b"x" * 512 + bytes(512)
    file.set_file_metadata({"a": "1"})
    assert link.get_file_properties().metadata == {"a": "1"}
    assert link.get_file_properties().etag == file.get_file_properties().etag
    file.delete_file()
    assert (names(nfs), names(nfs, "dir")) == (["dir"], ["link"])
    seen = link.get_file_properties()
    assert (seen.link_count, seen.size, seen.file_id) == (1, 1024, made["file_id"])
    link.delete_file()
    assert names(nfs, "dir") == []


def test_a_lease_is_of_all_names(nfs):
    file, link = nfs.get_file_client("file"), nfs.get_file_client("link")
    file.create_file(0)
    lease = file.acquire_lease()
    with refused(412, "LeaseIdMissing"):
        link.create_hardlink(target="file")
    # The client sends what it is given.
    assert link.create_hardlink(target="file", lease=lease.id)["link_count"] == 2
    with refused(412, "LeaseIdMissing"):
        link.delete_file()
    link.delete_file(lease=lease)
    assert file.get_file_properties().lease.state == "leased"


def test_hard_links_that_are_refused(server, nfs):
    file, link = nfs.get_file_client("file"), nfs.get_file_client("link")
    file.create_file(0)
    with pytest.raises(ResourceNotFoundError, match="ParentNotFound"):
        nfs.get_file_client("none/link").create_hardlink(target="none/file")
    with refused(404, "ResourceNotFound"):
        link.create_hardlink(target="none")
    with refused(409, "ResourceTypeMismatch"):
        link.create_hardlink(target="dir")
    link.create_hardlink(target="file")
    with pytest.raises(ResourceExistsError, match="ResourceAlreadyExists"):
        link.create_hardlink(target="file")
    smb = server.shares().create_share("smb")
    smb.get_file_client("file").create_file(0)
    with refused(400, "UnsupportedQueryParameter"):
        smb.get_file_client("link").create_hardlink(target="file")


@pytest.mark.parametrize("target", ["dir/file", "../a b/100%20", "/mnt/share/file"])
def test_a_symbolic_link_is_told_and_not_followed(nfs, target):
    link = nfs.get_file_client("dir/link")
    then = "2020-01-02T03:04:05.0000000Z"
    # The client sends its argument `metadata` in one header, which is none of metadata.
    said = {"owner": "345", "group": "123", "file_creation_time": then, "headers": {"x-ms-meta-a": "1"}}
    made = link.create_symlink(target=target, **said)
    assert (made["file_file_type"], made["owner"], made["group"], made["mode"]) == ("SymLink", "345", "123", "0777")
    for name in ("file_creation_time", "file_last_write_time", "file_change_time", "file_id", "file_parent_id"):
        assert made[name] is not None, name
    told = link.get_symlink()
    assert (unquote(told["link_text"]), told["etag"]) == (target, made["etag"])
    seen = link.get_file_properties()
    assert (seen.nfs_file_type, seen.link_count, seen.owner, seen.metadata) == ("SymLink", 1, "345", {"a": "1"})
    assert seen.creation_time.replace(tzinfo=timezone.utc) == datetime(2020, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    assert names(nfs, "dir") == ["link"]
    with refused(409, "ResourceTypeMismatch"):
        link.download_file()
    with refused(409, "ResourceTypeMismatch"):
        link.create_file(0)
    with pytest.raises(ResourceExistsError):
        link.create_symlink(target=target)
    link.rename_file("dir/renamed")
    renamed = nfs.get_file_client("dir/renamed")
    assert unquote(renamed.get_symlink()["link_text"]) == target
    renamed.delete_file()
    assert names(nfs, "dir") == []


def test_symbolic_links_that_are_refused(server, nfs):
    nfs.get_file_client("file").create_file(0)
    with pytest.raises(ResourceNotFoundError, match="ParentNotFound"):
        nfs.get_file_client("none/link").create_symlink(target="file")
    with pytest.raises(ResourceNotFoundError, match="ResourceNotFound"):
        nfs.get_file_client("file").get_symlink()
    with pytest.raises(ResourceNotFoundError, match="ResourceNotFound"):
        nfs.get_file_client("none").get_symlink()
    with refused(400, "UnsupportedQueryParameter"):
        server.shares().create_share("smb").get_file_client("link").create_symlink(target="file")


def test_a_copy_takes_owner_group_and_mode_from_where_it_is_told(nfs):
    source = nfs.get_file_client("source")
    source.create_file(512, owner="999", group="888", file_mode="0111")

    def copied(**more):
        to = nfs.get_file_client("to")
        assert to.start_copy_from_url(source.url, **more)["copy_status"] == "success"
        seen = to.get_file_properties()
        return seen.owner, seen.group, seen.file_mode

    assert copied(file_mode_copy_mode="source", owner_copy_mode="source") == ("999", "888", "0111")
    assert copied() == ("0", "0", "0664")
    given = {"owner": "54321", "group": "12345", "file_mode": "7777"}
    assert copied(file_mode_copy_mode="override", owner_copy_mode="override", **given) == ("54321", "12345", "7777")


@pytest.mark.parametrize("end", ["kill -9", "SIGTERM"])
def test_links_are_there_afterwards(server, nfs, end):
    file = nfs.get_file_client("file")
    file.upload_file(b"content")
    for name in ("two", "dir/three"):
        nfs.get_file_client(name).create_hardlink(target="file")
    nfs.get_file_client("symbolic").create_symlink(target="file")
    file.delete_file()
    if end == "kill -9":
        server.kill9()
    else:
        assert server.stop() == 0
    server.restart()
    nfs = server.shares().get_share_client("nfs")
    assert names(nfs) == ["dir", "symbolic", "two"]
    for name in ("two", "dir/three"):
        assert nfs.get_file_client(name).download_file().readall() == b"content"
        assert nfs.get_file_client(name).get_file_properties().link_count == 2
    assert nfs.get_file_client("symbolic").get_symlink()["link_text"] == "file"
