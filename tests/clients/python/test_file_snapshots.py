"""Share snapshots through azure-storage-file-share: taken, listed, read, compared, leased, deleted and restored."""

from datetime import datetime, timedelta, timezone

import pytest
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.storage.fileshare import ShareClient, ShareLeaseClient, generate_share_sas

from harness import ACCOUNT, KEY, refused

PAGE = 512


@pytest.fixture
def shares(server):
    return server.shares()


@pytest.fixture
def docs(shares):
    docs = shares.create_share("docs", metadata={"colour": "blue"})
    docs.create_directory("dir")
    docs.get_file_client("dir/file").upload_file(b"before" * 1000, metadata={"a": "1"})
    docs.get_file_client("dir/gone").upload_file(b"gone")
    return docs


def at(shares, snapshot):
    return shares.get_share_client("docs", snapshot=snapshot)


def tree(share, path=""):
    found = {}
    for entry in share.list_directories_and_files(path or None):
        below = f"{path}/{entry.name}" if path else entry.name
        found.update(tree(share, below) if entry.is_directory else {below: share.get_file_client(below).download_file().readall()})
    return found


def change(docs):
    """Everything that may become of a file."""
    docs.get_file_client("dir/file").upload_range(b"after!", 0, 6)
    docs.get_file_client("dir/file").set_file_metadata({"a": "2"})
    docs.get_file_client("dir/gone").delete_file()
    docs.get_directory_client("dir").rename_directory("moved")
    docs.get_file_client("new").upload_file(b"new")


def test_a_snapshot_stays_as_it_was(shares, docs):
    before = tree(docs)
    taken = docs.create_snapshot()
    assert taken["snapshot"].endswith(".0000000Z")
    properties = docs.get_share_properties()
    assert (taken["etag"], taken["last_modified"]) == (properties.etag, properties.last_modified)
    change(docs)
    snapshot = at(shares, taken["snapshot"])
    assert tree(snapshot) == before and tree(docs) != before
    file = snapshot.get_file_client("dir/file")
    seen = file.get_file_properties()
    assert (seen.metadata, seen.size) == ({"a": "1"}, 6000)
    assert snapshot.get_directory_client("dir").get_directory_properties().is_directory
    assert [(found.start, found.end) for found in file.list_ranges()] == [(0, 5999)]
    assert snapshot.get_share_properties().metadata == {"colour": "blue"}
    with refused(404, "ResourceNotFound", ResourceNotFoundError):
        snapshot.get_file_client("new").get_file_properties()


def test_snapshots_are_listed_and_deleted(shares, docs):
    first = docs.create_snapshot(metadata={"colour": "red"})["snapshot"]
    second = docs.create_snapshot()["snapshot"]
    assert first < second
    listed = [(s.name, s.snapshot, s.metadata) for s in shares.list_shares(include_snapshots=True, include_metadata=True)]
    blue = {"colour": "blue"}
    assert listed == [("docs", first, {"colour": "red"}), ("docs", second, blue), ("docs", None, blue)]
    assert [s.snapshot for s in shares.list_shares()] == [None]
    with refused(409, "ShareHasSnapshots", ResourceExistsError):
        docs.delete_share()
    at(shares, first).delete_share()
    with refused(404, "ShareNotFound", ResourceNotFoundError):
        at(shares, first).get_share_properties()
    shares.delete_share("docs", delete_snapshots=True)
    assert list(shares.list_shares(include_snapshots=True)) == []


def test_what_has_changed_since_a_snapshot(docs):
    file = docs.get_file_client("disk")
    file.create_file(8 * PAGE)
    file.upload_range(b"a" * 3 * PAGE, 0, 3 * PAGE)
    first = docs.create_snapshot()
    file.upload_range(b"b" * PAGE, 4 * PAGE, PAGE)
    file.clear_range(0, PAGE)
    second = docs.create_snapshot()
    assert diff(file, first) == diff(file, first["snapshot"], results_per_page=1) == {(0, "cleared"), (4, "written")}
    assert diff(file, second) == set()
    renamed = file.rename_file("renamed")
    with refused(409, "FileGenerationMismatch", ResourceExistsError):
        diff(renamed, first)
    assert diff(renamed, first, include_renames=True) == {(0, "cleared"), (4, "written")}
    renamed.create_file(PAGE)
    with refused(409, "FileGenerationMismatch", ResourceExistsError):
        diff(renamed, first, include_renames=True)
    with refused(404, "ShareNotFound", ResourceNotFoundError):
        diff(renamed, "2020-01-01T00:00:00.0000000Z")


def diff(file, previous, **options):
    """The pages that have changed."""
    changed = file.list_ranges_diff(previous, **options)
    return {(found.start // PAGE, "cleared" if found.cleared else "written") for found in changed}


def test_a_leased_snapshot_is_deleted_by_its_holder(shares, docs):
    taken = docs.create_snapshot()["snapshot"]
    snapshot = at(shares, taken)
    lease = ShareLeaseClient(snapshot)
    lease.acquire(lease_duration=-1)
    assert snapshot.get_share_properties().lease.state == "leased"
    with refused(412, "LeaseIdMissing"):
        snapshot.delete_share()
    with refused(409, "DeleteShareWhenSnapshotLeased", ResourceExistsError):
        docs.delete_share(delete_snapshots="include")
    snapshot.delete_share(lease=lease)
    other = at(shares, docs.create_snapshot()["snapshot"])
    ShareLeaseClient(other).acquire(lease_duration=-1)
    docs.delete_share(delete_snapshots="include-leased")


def test_a_share_is_restored_with_its_snapshots(server, shares, docs):
    server.keep_deleted_shares(5)
    before = tree(docs)
    taken = docs.create_snapshot()["snapshot"]
    change(docs)
    docs.delete_share(delete_snapshots=True)
    deleted = next(share for share in shares.list_shares(include_deleted=True) if share.deleted)
    shares.undelete_share("docs", deleted.version)
    assert tree(at(shares, taken)) == before


def test_a_file_of_a_snapshot_is_copied_to_a_blob(container, shares, docs):
    taken = docs.create_snapshot()["snapshot"]
    docs.get_file_client("dir/file").upload_file(b"overwritten")
    source = at(shares, taken).get_file_client("dir/file").url
    signature = generate_share_sas(ACCOUNT, "docs", KEY, permission="r", expiry=datetime.now(timezone.utc) + timedelta(hours=1))
    copy, whole = container.get_blob_client("copy"), container.get_blob_client("whole")
    copy.start_copy_from_url(f"{source}&{signature}", requires_sync=False)
    whole.upload_blob_from_url(f"{source}&{signature}")
    assert copy.download_blob().readall() == whole.download_blob().readall() == b"before" * 1000


def test_a_file_is_restored_from_a_snapshot(shares, docs):
    taken = docs.create_snapshot()["snapshot"]
    file = docs.get_file_client("dir/file")
    file.upload_file(b"overwritten")
    source = at(shares, taken).get_file_client("dir/file")
    assert "sharesnapshot=" in source.url
    assert file.start_copy_from_url(source.url)["copy_status"] == "success"
    assert file.download_file().readall() == b"before" * 1000
    assert file.get_file_properties().metadata == {"a": "1"}
    signature = generate_share_sas(ACCOUNT, "docs", KEY, permission="rl", expiry=datetime.now(timezone.utc) + timedelta(hours=1))
    by_signature = ShareClient(docs.primary_endpoint.rsplit("/", 1)[0], "docs", snapshot=taken, credential=signature)
    assert tree(by_signature)["dir/file"] == b"before" * 1000
    file.upload_range_from_url(source.url + "&" + signature, offset=0, length=6, source_offset=6)
    assert file.download_file(offset=0, length=6).readall() == b"before"
