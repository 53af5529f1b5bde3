"""Snapshots: a state that stays."""

import pytest
from azure.core.exceptions import ResourceNotFoundError

from harness import refused


def at(container, blob, snapshot):
    return container.get_blob_client(blob.blob_name, snapshot=snapshot["snapshot"])


def test_a_snapshot_stays_as_it_was(container, blob):
    blob.upload_blob(b"old", metadata={"a": "1"})
    before = blob.get_blob_properties()
    snapshot = blob.create_snapshot()
    assert blob.get_blob_properties().etag == before.etag == snapshot["etag"]
    blob.upload_blob(b"new", overwrite=True, metadata={"a": "2"})
    old = at(container, blob, snapshot)
    assert old.download_blob().readall() == b"old"
    assert old.get_blob_properties().metadata == {"a": "1"}
    assert old.get_blob_properties().etag == before.etag
    assert old.get_blob_properties().snapshot == snapshot["snapshot"]
    assert blob.download_blob().readall() == b"new"


def test_a_snapshot_may_have_metadata_of_its_own(container, blob):
    blob.upload_blob(b"x", metadata={"a": "1"})
    before = blob.get_blob_properties().etag
    snapshot = blob.create_snapshot(metadata={"b": "2"})
    assert snapshot["etag"] != before
    assert blob.get_blob_properties().etag == before
    assert at(container, blob, snapshot).get_blob_properties().metadata == {"b": "2"}


def test_each_snapshot_has_its_own_name(blob):
    blob.upload_blob(b"x")
    assert len({blob.create_snapshot()["snapshot"] for _ in range(5)}) == 5


def test_a_blob_with_snapshots_is_not_deleted_by_accident(container, blob):
    blob.upload_blob(b"x")
    snapshot = blob.create_snapshot()
    with refused(409, "SnapshotsPresent"):
        blob.delete_blob()
    assert blob.exists()
    blob.delete_blob(delete_snapshots="include")
    assert not blob.exists()
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        at(container, blob, snapshot).download_blob()


def test_the_snapshots_alone_are_deleted(container, blob):
    blob.upload_blob(b"x")
    snapshots = [blob.create_snapshot() for _ in range(2)]
    blob.delete_blob(delete_snapshots="only")
    assert blob.download_blob().readall() == b"x"
    for snapshot in snapshots:
        assert not at(container, blob, snapshot).exists()
    blob.delete_blob()


def test_one_snapshot_is_deleted(container, blob):
    blob.upload_blob(b"x")
    first, second = blob.create_snapshot(), blob.create_snapshot()
    at(container, blob, first).delete_blob()
    assert not at(container, blob, first).exists()
    assert at(container, blob, second).exists()
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        at(container, blob, first).delete_blob()


def test_a_snapshot_that_never_was(container, blob):
    blob.upload_blob(b"x")
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        container.get_blob_client(blob.blob_name, snapshot="2020-01-01T00:00:00.0000000Z").download_blob()


@pytest.mark.parametrize("leased", [False, True])
def test_a_lease_does_not_hinder_a_snapshot(container, blob, leased):
    blob.upload_blob(b"x")
    if leased:
        blob.acquire_lease()
    snapshot = at(container, blob, blob.create_snapshot())
    assert snapshot.get_blob_properties().lease.state is None


def test_what_became_of_the_pages_since_a_snapshot(blob):
    """Pages that were written and cleared since are told, too."""
    blob.create_page_blob(8 * 512)
    blob.upload_page(b"a" * 512, offset=0, length=512)
    snapshot = blob.create_snapshot()
    blob.upload_page(b"b" * 1536, offset=1024, length=1536)
    blob.clear_page(offset=1536, length=512)
    blob.clear_page(offset=0, length=512)
    written = [(1024, 1535), (2048, 2559)]
    cleared = [(0, 511), (1536, 2047)]
    changed = [(found.start, found.end, found.cleared) for found in blob.list_page_ranges(previous_snapshot=snapshot)]
    assert changed == sorted([(*span, False) for span in written] + [(*span, True) for span in cleared])
    pages = blob.list_page_ranges(previous_snapshot=snapshot, results_per_page=3).by_page()
    assert [len(list(page)) for page in pages] == [3, 1]
