"""Access tiers, and what protects a blob from being changed."""

from datetime import datetime, timedelta, timezone

from azure.storage.blob import ImmutabilityPolicy, RehydratePriority, StandardBlobTier

from harness import refused


def test_a_tier_is_set_and_told(container, blob):
    blob.upload_blob(b"x", standard_blob_tier=StandardBlobTier.COOL)
    assert blob.get_blob_properties().blob_tier == "Cool"
    blob.set_standard_blob_tier(StandardBlobTier.COLD)
    properties = blob.get_blob_properties()
    assert (properties.blob_tier, properties.blob_tier_inferred) == ("Cold", None)
    assert [found.blob_tier for found in container.list_blobs()] == ["Cold"]


def test_what_is_archived_must_be_rehydrated(blob):
    blob.upload_blob(b"x", standard_blob_tier=StandardBlobTier.ARCHIVE)
    with refused(409, "BlobArchived"):
        blob.download_blob()
    blob.set_standard_blob_tier(StandardBlobTier.HOT, rehydrate_priority=RehydratePriority.HIGH)
    properties = blob.get_blob_properties()
    assert (properties.archive_status, properties.rehydrate_priority) == ("rehydrate-pending-to-hot", "High")
    with refused(409, "BlobBeingRehydrated"):
        blob.set_standard_blob_tier(StandardBlobTier.COOL)


def test_a_copy_brings_it_out_of_the_archive(server, container, blob):
    blob.upload_blob(b"x", standard_blob_tier=StandardBlobTier.ARCHIVE)
    copy = container.get_blob_client("copy")
    with refused(409, "BlobArchived"):
        copy.start_copy_from_url(blob.url)
    started = copy.start_copy_from_url(
        blob.url, standard_blob_tier=StandardBlobTier.COOL, rehydrate_priority=RehydratePriority.HIGH
    )
    assert started["copy_status"] == "pending"
    assert copy.get_blob_properties().archive_status == "rehydrate-pending-to-cool"
    with refused(409, "BlobArchived"):
        copy.download_blob()
    server.advance(3600)
    properties = copy.get_blob_properties()
    assert (properties.copy.status, properties.copy.progress, properties.blob_tier) == ("success", "1/1", "Cool")
    assert copy.download_blob().readall() == b"x"
    assert blob.get_blob_properties().blob_tier == "Archive"


def test_a_policy_and_a_hold(blob):
    blob.upload_blob(b"x")
    until = datetime.now(timezone.utc) + timedelta(days=1)
    blob.set_immutability_policy(ImmutabilityPolicy(expiry_time=until, policy_mode="Unlocked"))
    assert blob.get_blob_properties().immutability_policy.policy_mode == "unlocked"
    with refused(409, "BlobImmutableDueToPolicy"):
        blob.upload_blob(b"y", overwrite=True)
    blob.delete_immutability_policy()
    assert blob.set_legal_hold(True)["legal_hold"]
    with refused(409, "BlobImmutableDueToLegalHold"):
        blob.delete_blob()
    blob.set_legal_hold(False)
    assert not blob.get_blob_properties().has_legal_hold
    blob.delete_blob()
