"""Versions and soft delete: what was there before can be had again."""

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import BlobProperties, RetentionPolicy

from harness import ACCOUNT, KEY, Server, refused

DAY = 24 * 3600


def configured(tmp_path, *settings):
    folder = tmp_path / "data"
    folder.mkdir()
    lines = [f"[accounts.{ACCOUNT}]", f'keys = ["{KEY}"]', *settings]
    (folder / "lazurite.toml").write_text("\n".join(lines) + "\n")
    return Server(folder).start()


@pytest.fixture
def versioned(tmp_path):
    server = configured(tmp_path, "versioning = true")
    yield server
    assert server.stop() == 0, server.log.read_text()


@pytest.fixture
def soft(tmp_path):
    server = configured(tmp_path, "blob_soft_delete_days = 7", "container_soft_delete_days = 7")
    yield server
    assert server.stop() == 0, server.log.read_text()


def test_every_write_keeps_what_was_there(versioned):
    box = versioned.service().create_container("box")
    blob = box.get_blob_client("thing")
    ids = [blob.upload_blob(text, overwrite=True)["version_id"] for text in (b"one", b"two", b"three")]
    versioned.kill9()
    versioned.restart()
    box = versioned.service().get_container_client("box")
    blob = box.get_blob_client("thing")
    assert [blob.download_blob(version_id=id).readall() for id in ids] == [b"one", b"two", b"three"]
    listed = list(box.list_blobs(include=["versions"]))
    assert [item.version_id for item in listed] == ids
    assert [bool(item.is_current_version) for item in listed] == [False, False, True]
    assert blob.get_blob_properties().is_current_version
    with refused(403, "OperationNotAllowedOnRootBlob"):
        blob.delete_blob(version_id=ids[2])
    blob.delete_blob(version_id=ids[0])
    blob.delete_blob()
    assert not blob.exists()
    assert blob.exists(version_id=ids[1]) and not blob.exists(version_id=ids[0])
    only = list(box.list_blobs(include=["deletedwithversions"]))
    assert [(item.name, item.has_versions_only) for item in only] == [("thing", True)]
    assert list(box.list_blobs()) == []


def test_what_is_deleted_comes_back(soft):
    box = soft.service().create_container("box")
    blob = box.get_blob_client("thing")
    blob.upload_blob(b"first")
    blob.upload_blob(b"second", overwrite=True)
    blob.delete_blob()
    assert not blob.exists() and list(box.list_blobs()) == []
    deleted = list(box.list_blobs(include=["deleted", "snapshots"]))
    assert [(item.deleted, item.snapshot is not None) for item in deleted] == [(True, True), (True, False)]
    assert all(isinstance(item, BlobProperties) and item.deleted_time for item in deleted)
    assert {item.remaining_retention_days for item in deleted} == {7}
    soft.kill9()
    soft.restart()
    box = soft.service().get_container_client("box")
    blob = box.get_blob_client("thing")
    blob.undelete_blob()
    assert blob.download_blob().readall() == b"second"
    snapshot = next(item.snapshot for item in box.list_blobs(include=["snapshots"]) if item.snapshot)
    assert box.get_blob_client("thing", snapshot=snapshot).download_blob().readall() == b"first"
    blob.delete_blob(delete_snapshots="include")
    soft.advance(7 * DAY)
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        blob.undelete_blob()
    assert list(box.list_blobs(include=["deleted", "snapshots"])) == []


def test_the_retention_is_set_by_the_client(soft):
    service = soft.service()
    assert service.get_service_properties()["delete_retention_policy"].days == 7
    service.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=False))
    blob = service.create_container("box").get_blob_client("thing")
    blob.upload_blob(b"x")
    blob.delete_blob()
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        blob.undelete_blob()


def test_a_container_comes_back(soft):
    service = soft.service()
    box = service.create_container("box", metadata={"a": "1"})
    box.upload_blob("thing", b"kept")
    box.delete_container()
    assert not box.exists()
    (deleted,) = service.list_containers(include_deleted=True)
    assert (deleted.name, deleted.deleted) == ("box", True)
    restored = service.undelete_container("box", deleted.version)
    assert restored.download_blob("thing").readall() == b"kept"
    assert restored.get_container_properties().metadata == {"a": "1"}
