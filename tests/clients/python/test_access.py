"""Who may do what: keys, shared access signatures, public containers."""

from datetime import datetime, timedelta, timezone

import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.storage.blob import (
    AccessPolicy, AccountSasPermissions, BlobClient, BlobSasPermissions, BlobServiceClient, ContainerClient,
    ContainerSasPermissions, ResourceTypes, generate_account_sas, generate_blob_sas, generate_container_sas,
)

from harness import ACCOUNT, KEY, refused

SOON = datetime.now(timezone.utc) + timedelta(hours=1)
PAST = datetime.now(timezone.utc) - timedelta(hours=1)
OTHER_KEY = "bm90IHRoZSBrZXkgb2YgdGhpcyBhY2NvdW50"


def with_sas(server, token):
    return BlobServiceClient(server.blob_url, credential=token, retry_total=0)


@pytest.fixture
def stored(container):
    container.upload_blob("b", b"content")
    return container


def test_a_wrong_key_is_refused(server, stored):
    credential = {"account_name": ACCOUNT, "account_key": OTHER_KEY}
    stranger = BlobServiceClient(server.blob_url, credential=credential, retry_total=0)
    with refused(403, "AuthenticationFailed", ClientAuthenticationError):
        list(stranger.list_containers())
    with refused(403, "AuthenticationFailed", ClientAuthenticationError):
        stranger.get_blob_client("box", "b").download_blob()
    with refused(403, "AuthenticationFailed", ClientAuthenticationError):
        stranger.get_blob_client("box", "b").delete_blob()
    assert stored.download_blob("b").readall() == b"content"


def test_metadata_names_are_signed_in_any_order(blob):
    """The service sorts header names in an order of its own; names with digits, dashes and underscores show it."""
    metadata = {"a": "1", "a_b": "2", "a1": "3", "ab": "4", "Z": "5", "_x": "6", "b": "7"}
    blob.upload_blob(b"x", metadata=metadata)
    assert blob.get_blob_properties().metadata == metadata


def test_an_account_signature_gives_what_it_says(server, stored):
    read = generate_account_sas(ACCOUNT, KEY, ResourceTypes(object=True), AccountSasPermissions(read=True), SOON)
    reader = with_sas(server, read).get_blob_client("box", "b")
    assert reader.download_blob().readall() == b"content"
    with refused(403, "AuthorizationPermissionMismatch"):
        reader.upload_blob(b"x", overwrite=True)
    with refused(403, "AuthorizationResourceTypeMismatch"):
        list(with_sas(server, read).list_containers())
    everything = generate_account_sas(
        ACCOUNT, KEY, ResourceTypes(True, True, True), AccountSasPermissions.from_string("rwdlac"), SOON
    )
    owner = with_sas(server, everything)
    owner.create_container("another").upload_blob("b", b"x")
    assert [found.name for found in owner.list_containers()] == ["another", "box"]


def test_a_signature_ends(server, stored):
    late = generate_account_sas(ACCOUNT, KEY, ResourceTypes(object=True), AccountSasPermissions(read=True), PAST)
    with refused(403, "AuthenticationFailed"):
        with_sas(server, late).get_blob_client("box", "b").download_blob()


def test_a_signature_for_one_blob(server, stored):
    stored.upload_blob("other", b"x")
    token = generate_blob_sas(ACCOUNT, "box", "b", account_key=KEY, permission=BlobSasPermissions(read=True), expiry=SOON)
    url = f"{server.blob_url}/box"
    assert BlobClient.from_blob_url(f"{url}/b?{token}").download_blob().readall() == b"content"
    with refused(403, "AuthenticationFailed"):
        BlobClient.from_blob_url(f"{url}/other?{token}").download_blob()
    with refused(403, "AuthorizationPermissionMismatch"):
        BlobClient.from_blob_url(f"{url}/b?{token}").delete_blob()


def test_create_is_not_overwrite(server, stored):
    token = generate_container_sas(ACCOUNT, "box", KEY, permission=ContainerSasPermissions(create=True), expiry=SOON)
    box = with_sas(server, token).get_container_client("box")
    box.upload_blob("new", b"x")
    with refused(403, "UnauthorizedBlobOverwrite"):
        box.upload_blob("b", b"x", overwrite=True)
    assert stored.download_blob("b").readall() == b"content"


def test_a_signature_by_policy_ends_with_it(server, stored):
    policy = AccessPolicy(permission=ContainerSasPermissions(read=True, list=True), start=PAST, expiry=SOON)
    stored.set_container_access_policy({"readers": policy})
    token = generate_container_sas(ACCOUNT, "box", KEY, policy_id="readers")
    reader = with_sas(server, token).get_container_client("box")
    assert reader.download_blob("b").readall() == b"content"
    assert [found.name for found in reader.list_blobs()] == ["b"]
    stored.set_container_access_policy({})
    with refused(403, "AuthenticationFailed"):
        reader.download_blob("b")


def test_a_public_container_is_read_by_anybody(server, stored):
    stored.set_container_access_policy({}, public_access="blob")
    anybody = ContainerClient(server.blob_url, "box", retry_total=0)
    assert anybody.download_blob("b").readall() == b"content"
    with refused(401, "NoAuthenticationInformation", ClientAuthenticationError):
        list(anybody.list_blobs())
    stored.set_container_access_policy({}, public_access="container")
    assert [found.name for found in anybody.list_blobs()] == ["b"]
    with refused(401, "NoAuthenticationInformation", ClientAuthenticationError):
        anybody.upload_blob("b", b"x", overwrite=True)
    assert stored.download_blob("b").readall() == b"content"


def test_a_private_container_is_not(server, stored):
    anybody = ContainerClient(server.blob_url, "box", retry_total=0)
    with refused(401, "NoAuthenticationInformation", ClientAuthenticationError):
        anybody.download_blob("b")
