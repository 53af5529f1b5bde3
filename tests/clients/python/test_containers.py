"""Containers: life, metadata, access policy, listing."""

from datetime import datetime, timezone

import pytest
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import AccessPolicy, ContainerSasPermissions, PublicAccess

from harness import refused


def test_a_container_is_created_once(service):
    container = service.create_container("box", metadata={"Colour": "blue"})
    properties = container.get_container_properties()
    assert properties.name == "box"
    assert properties.metadata == {"Colour": "blue"}
    assert properties.etag.startswith('"0x')
    assert (properties.lease.status, properties.lease.state, properties.lease.duration) == ("unlocked", "available", None)
    assert not properties.public_access
    with refused(409, "ContainerAlreadyExists", ResourceExistsError):
        service.create_container("box")
    assert container.get_container_properties().etag == properties.etag


def test_what_is_not_there_is_not_found(service):
    missing = service.get_container_client("missing")
    assert not missing.exists()
    with refused(404, "ContainerNotFound", ResourceNotFoundError):
        missing.get_container_properties()
    with refused(404, "ContainerNotFound", ResourceNotFoundError):
        missing.set_container_metadata({"a": "b"})
    with refused(404, "ContainerNotFound", ResourceNotFoundError):
        missing.delete_container()
    with refused(404, "ContainerNotFound", ResourceNotFoundError):
        list(missing.list_blobs())
    with refused(404, "ContainerNotFound", ResourceNotFoundError):
        missing.upload_blob("b", b"x")
    with refused(404, "ContainerNotFound", ResourceNotFoundError):
        missing.acquire_lease()


@pytest.mark.parametrize(
    ("name", "code"),
    [("Upper", "InvalidResourceName"), ("a--b", "InvalidResourceName"), ("under_score", "InvalidResourceName"),
     ("ab", "OutOfRangeInput"), ("a" * 64, "OutOfRangeInput")],
)
def test_a_bad_name_is_refused(service, name, code):
    with refused(400, code):
        service.create_container(name)


def test_metadata_is_replaced_whole_and_changes_the_etag(container):
    before = container.get_container_properties()
    container.set_container_metadata({"one": "1", "Two": "2"})
    middle = container.get_container_properties()
    assert middle.metadata == {"one": "1", "Two": "2"}
    assert middle.etag != before.etag
    container.set_container_metadata({"three": "3"})
    assert container.get_container_properties().metadata == {"three": "3"}
    container.set_container_metadata()
    assert container.get_container_properties().metadata == {}


def test_metadata_takes_a_date_condition(server, container):
    server.advance(10)
    changed = container.get_container_properties().last_modified
    with refused(412, "ConditionNotMet"):
        container.set_container_metadata({"a": "1"}, if_modified_since=changed)
    server.advance(10)
    container.set_container_metadata({"a": "1"})
    container.set_container_metadata({"a": "2"}, if_modified_since=changed)
    assert container.get_container_properties().metadata == {"a": "2"}


def test_operations_on_blobs_do_not_touch_the_container(container):
    before = container.get_container_properties()
    container.upload_blob("b", b"x")
    container.delete_blob("b")
    after = container.get_container_properties()
    assert (after.etag, after.last_modified) == (before.etag, before.last_modified)


def test_access_policies_are_kept(container):
    assert container.get_container_access_policy()["signed_identifiers"] == []
    before = container.get_container_properties().etag
    start, expiry = datetime(2026, 1, 1, tzinfo=timezone.utc), datetime(2030, 1, 1, tzinfo=timezone.utc)
    policy = AccessPolicy(permission=ContainerSasPermissions(read=True, list=True), start=start, expiry=expiry)
    container.set_container_access_policy({"readers": policy, "later": AccessPolicy()}, public_access=PublicAccess.BLOB)
    answer = container.get_container_access_policy()
    found = {identifier.id: identifier.access_policy for identifier in answer["signed_identifiers"]}
    assert answer["public_access"] == "blob"
    assert set(found) == {"readers", "later"}
    assert found["readers"].permission == "rl"
    assert str(found["readers"].start).startswith("2026-01-01T00:00:00")
    assert str(found["readers"].expiry).startswith("2030-01-01T00:00:00")
    properties = container.get_container_properties()
    assert properties.etag != before
    assert properties.public_access == "blob"
    container.set_container_access_policy({})
    answer = container.get_container_access_policy()
    assert answer["signed_identifiers"] == [] and answer["public_access"] is None


def test_a_deleted_container_and_its_blobs_are_gone(service, container):
    container.upload_blob("b", b"x")
    container.delete_container()
    with refused(404, "ContainerNotFound", ResourceNotFoundError):
        container.get_container_properties()
    with refused(404, "ContainerNotFound", ResourceNotFoundError):
        container.download_blob("b")
    with refused(404, "ContainerNotFound", ResourceNotFoundError):
        container.delete_container()
    assert list(service.list_containers()) == []


def test_a_container_made_again_is_empty(server, service, container):
    container.upload_blob("b", b"x")
    etag = container.get_container_properties().etag
    container.delete_container()
    server.advance(60)  # The service may hold the name back for a while.
    again = service.create_container("box")
    assert list(again.list_blobs()) == []
    assert again.get_container_properties().etag != etag
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        again.download_blob("b")


def test_containers_are_listed_in_order_and_by_page(service):
    names = [f"list-{number:02}" for number in range(12)]
    for name in reversed(names):
        service.create_container(name, metadata={"n": name[-2:]})
    service.create_container("other")
    assert [found.name for found in service.list_containers()] == [*names, "other"]
    assert [found.name for found in service.list_containers(name_starts_with="list-1")] == ["list-10", "list-11"]
    pages = service.list_containers(name_starts_with="list-", results_per_page=5).by_page()
    pages = [[found.name for found in page] for page in pages]
    assert [len(page) for page in pages] == [5, 5, 2]
    assert sum(pages, []) == names
    assert all(not found.metadata for found in service.list_containers())
    with_metadata = list(service.list_containers(name_starts_with="list-", include_metadata=True))
    assert [found.metadata for found in with_metadata] == [{"n": name[-2:]} for name in names]
    first, properties = with_metadata[0], service.get_container_client(names[0]).get_container_properties()
    assert first.etag.strip('"') == properties.etag.strip('"')
    assert (first.last_modified, first.lease.state) == (properties.last_modified, "available")


def test_a_listing_goes_on_from_its_marker(service):
    for number in range(5):
        service.create_container(f"list-{number}")
    pages = service.list_containers(results_per_page=2).by_page()
    next(pages)
    rest = service.list_containers(results_per_page=2).by_page(pages.continuation_token)
    assert [found.name for page in rest for found in page] == ["list-2", "list-3", "list-4"]


def test_the_service_knows_itself(service):
    assert set(service.get_account_information()) >= {"sku_name", "account_kind"}
    properties = service.get_service_properties()
    assert properties["static_website"].enabled is False


def test_a_batch_deletes_what_it_can(container):
    for name in ("one", "two", "a b/ä"):
        container.upload_blob(name, b"x")
    answers = list(container.delete_blobs("one", "gone", "a b/ä", raise_on_any_failure=False))
    assert [answer.status_code for answer in answers] == [202, 404, 202]
    assert answers[1].headers["x-ms-error-code"] == "BlobNotFound"
    assert [blob.name for blob in container.list_blobs()] == ["two"]
