"""Leases on blobs and containers: the five actions, and what a lease keeps out. Time is the test clock's."""

import uuid

import pytest
from azure.storage.blob import BlobBlock, BlobLeaseClient, ContentSettings

from harness import refused

MINE, YOURS, OTHER = (str(uuid.UUID(int=number)) for number in (1, 2, 3))


@pytest.fixture(params=["blob", "container"])
def leasable(request, container, blob):
    """What can be leased: the actions follow one table for both."""
    if request.param == "container":
        return container
    blob.upload_blob(b"x")
    return blob


def lease(resource, lease_id=MINE):
    """A handle on the lease, whether or not it is held."""
    return BlobLeaseClient(resource, lease_id)


def state(resource):
    read = getattr(resource, "get_blob_properties", None) or resource.get_container_properties
    found = read().lease
    return found.status, found.state, found.duration


LEASED_FIXED = ("locked", "leased", "fixed")
LEASED_INFINITE = ("locked", "leased", "infinite")
AVAILABLE = ("unlocked", "available", None)
EXPIRED = ("unlocked", "expired", None)
BREAKING = ("locked", "breaking", None)
BROKEN = ("unlocked", "broken", None)


# Acquire


def test_acquire_gives_an_id(leasable):
    assert uuid.UUID(leasable.acquire_lease(15).id)
    assert state(leasable) == LEASED_FIXED


def test_acquire_takes_a_proposed_id(leasable):
    assert leasable.acquire_lease(-1, lease_id=MINE).id == MINE
    assert state(leasable) == LEASED_INFINITE


def test_only_one_holds_it(leasable):
    leasable.acquire_lease(15, lease_id=MINE)
    with refused(409, "LeaseAlreadyPresent"):
        leasable.acquire_lease(15)
    with refused(409, "LeaseAlreadyPresent"):
        leasable.acquire_lease(15, lease_id=YOURS)


def test_the_holder_may_acquire_again_with_another_duration(server, leasable):
    leasable.acquire_lease(15, lease_id=MINE)
    leasable.acquire_lease(60, lease_id=MINE)
    server.advance(50)
    assert state(leasable) == LEASED_FIXED
    leasable.acquire_lease(-1, lease_id=MINE)
    server.advance(1000)
    assert state(leasable) == LEASED_INFINITE


@pytest.mark.parametrize("duration", [0, 14, 61, -2])
def test_a_duration_out_of_bounds_is_refused(leasable, duration):
    with refused(400, "InvalidHeaderValue"):
        leasable.acquire_lease(duration)
    assert state(leasable) == AVAILABLE


def test_an_id_that_is_no_guid_is_refused(leasable):
    with refused(400, "InvalidHeaderValue"):
        leasable.acquire_lease(15, lease_id="not-a-guid")


@pytest.mark.parametrize("duration", [15, 60])
def test_a_lease_ends_when_its_time_is_over(server, leasable, duration):
    leasable.acquire_lease(duration, lease_id=MINE)
    server.advance(duration - 5)
    with refused(409, "LeaseAlreadyPresent"):
        leasable.acquire_lease(15, lease_id=YOURS)
    server.advance(5)
    assert state(leasable) == EXPIRED
    leasable.acquire_lease(15, lease_id=YOURS)
    with refused(409, "LeaseIdMismatchWithLeaseOperation"):
        lease(leasable).renew()


def test_lease_actions_leave_the_etag_alone(leasable):
    read = getattr(leasable, "get_blob_properties", None) or leasable.get_container_properties
    before = read()
    held = leasable.acquire_lease(15, lease_id=MINE)
    held.renew()
    held.change(YOURS)
    held.release()
    leasable.acquire_lease().break_lease(0)
    after = read()
    assert (after.etag, after.last_modified) == (before.etag, before.last_modified)


# Renew


def test_renew_starts_the_time_again(server, leasable):
    held = leasable.acquire_lease(30, lease_id=MINE)
    server.advance(20)
    held.renew()
    server.advance(20)
    assert state(leasable) == LEASED_FIXED
    server.advance(10)
    assert state(leasable) == EXPIRED


def test_an_expired_lease_may_be_renewed_by_its_holder_only(server, leasable):
    held = leasable.acquire_lease(15, lease_id=MINE)
    server.advance(20)
    with refused(409, "LeaseIdMismatchWithLeaseOperation"):
        lease(leasable, YOURS).renew()
    held.renew()
    assert state(leasable) == LEASED_FIXED


def test_a_lease_is_not_renewed_after_a_write_by_another(server, blob):
    blob.upload_blob(b"x")
    held = blob.acquire_lease(15, lease_id=MINE)
    server.advance(20)
    blob.upload_blob(b"y", overwrite=True)
    assert state(blob) == AVAILABLE
    with refused(409, "LeaseIdMismatchWithLeaseOperation"):
        held.renew()


def test_renew_of_what_is_not_held(leasable):
    with refused(409, "LeaseIdMismatchWithLeaseOperation"):
        lease(leasable).renew()
    leasable.acquire_lease(15, lease_id=MINE)
    with refused(409, "LeaseIdMismatchWithLeaseOperation"):
        lease(leasable, YOURS).renew()


# Change


def test_change_hands_the_lease_over(server, leasable):
    held = leasable.acquire_lease(30, lease_id=MINE)
    server.advance(20)
    held.change(YOURS)
    assert held.id == YOURS
    with refused(409, "LeaseIdMismatchWithLeaseOperation"):
        lease(leasable).renew()
    server.advance(10)  # The time is that of the acquire.
    assert state(leasable) == EXPIRED


def test_change_may_be_repeated(leasable):
    leasable.acquire_lease(15, lease_id=MINE).change(YOURS)
    lease(leasable, MINE).change(YOURS)
    with refused(409, "LeaseIdMismatchWithLeaseOperation"):
        lease(leasable, MINE).change(OTHER)


def test_change_of_what_is_not_held(leasable):
    with refused(409, "LeaseNotPresentWithLeaseOperation"):
        lease(leasable).change(YOURS)


# Release


def test_release_frees_at_once(leasable):
    held = leasable.acquire_lease(-1, lease_id=MINE)
    with refused(409, "LeaseIdMismatchWithLeaseOperation"):
        lease(leasable, YOURS).release()
    held.release()
    assert state(leasable) == AVAILABLE
    leasable.acquire_lease(15, lease_id=YOURS)
    with refused(409, "LeaseIdMismatchWithLeaseOperation"):
        lease(leasable).release()


def test_release_of_an_expired_lease(server, leasable):
    held = leasable.acquire_lease(15)
    server.advance(15)
    held.release()
    assert state(leasable) == AVAILABLE


# Break


def test_break_of_an_infinite_lease_is_immediate(leasable):
    assert leasable.acquire_lease().break_lease() == 0
    assert state(leasable) == BROKEN


def test_break_of_a_fixed_lease_waits_for_its_end(server, leasable):
    held = leasable.acquire_lease(30)
    server.advance(10)
    assert 18 <= held.break_lease() <= 20
    assert state(leasable) == BREAKING
    with refused(409, "LeaseAlreadyPresent"):
        leasable.acquire_lease()
    server.advance(20)
    assert state(leasable) == BROKEN
    leasable.acquire_lease()


def test_a_break_period_never_lengthens_a_lease(server, leasable):
    held = leasable.acquire_lease(30)
    server.advance(20)
    assert 8 <= held.break_lease(60) <= 10
    assert held.break_lease(5) <= 5
    assert held.break_lease(60) <= 5
    server.advance(5)
    assert state(leasable) == BROKEN


def test_a_break_period_of_an_infinite_lease(server, leasable):
    held = leasable.acquire_lease()
    assert 59 <= held.break_lease(60) <= 60
    server.advance(30)
    assert state(leasable) == BREAKING
    assert held.break_lease(0) == 0
    assert state(leasable) == BROKEN


def test_what_is_breaking_is_neither_renewed_nor_changed_nor_acquired(leasable):
    held = leasable.acquire_lease(60, lease_id=MINE)
    held.break_lease()
    with refused(409, "LeaseIsBrokenAndCannotBeRenewed"):
        held.renew()
    with refused(409, "LeaseIsBreakingAndCannotBeChanged"):
        held.change(YOURS)
    with refused(409, "LeaseIsBreakingAndCannotBeAcquired"):
        leasable.acquire_lease(15, lease_id=MINE)
    held.release()
    assert state(leasable) == AVAILABLE


def test_what_is_broken_is_not_renewed(leasable):
    held = leasable.acquire_lease(60)
    held.break_lease(0)
    with refused(409, "LeaseIsBrokenAndCannotBeRenewed"):
        held.renew()
    assert held.break_lease() == 0


def test_break_of_what_was_never_leased(leasable):
    with refused(409, "LeaseNotPresentWithLeaseOperation"):
        lease(leasable).break_lease()


@pytest.mark.parametrize("period", [-1, 61])
def test_a_break_period_out_of_bounds_is_refused(leasable, period):
    held = leasable.acquire_lease()
    with refused(400, "InvalidHeaderValue"):
        held.break_lease(period)
    assert state(leasable) == LEASED_INFINITE


# What a lease keeps out: blobs

WRITES = {
    "PutBlob": lambda blob, **lease: blob.upload_blob(b"y", overwrite=True, **lease),
    "PutBlock": lambda blob, **lease: blob.stage_block("b1", b"y", **lease),
    "PutBlockList": lambda blob, **lease: blob.commit_block_list([BlobBlock("b1")], **lease),
    "SetBlobMetadata": lambda blob, **lease: blob.set_blob_metadata({"a": "1"}, **lease),
    "SetBlobProperties": lambda blob, **lease: blob.set_http_headers(ContentSettings("text/plain"), **lease),
    "DeleteBlob": lambda blob, **lease: blob.delete_blob(**lease),
}
READS = {
    "GetBlob": lambda blob, **lease: blob.download_blob(**lease),
    "GetBlobProperties": lambda blob, **lease: blob.get_blob_properties(**lease),
    "GetBlockList": lambda blob, **lease: blob.get_block_list("all", **lease),
    "SnapshotBlob": lambda blob, **lease: blob.create_snapshot(**lease),
}


@pytest.fixture
def written(blob):
    blob.upload_blob(b"x")
    blob.stage_block("b1", b"staged")
    return blob


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_needs_the_lease(written, write):
    before = written.get_blob_properties().etag
    held = written.acquire_lease(60, lease_id=MINE)
    with refused(412, "LeaseIdMissing"):
        write(written)
    with refused(412, "LeaseIdMismatchWithBlobOperation"):
        write(written, lease=YOURS)
    assert written.get_blob_properties().etag == before
    write(written, lease=held)


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_with_an_expired_lease_is_refused(server, written, write):
    written.acquire_lease(15, lease_id=MINE)
    server.advance(15)
    with refused(412, "LeaseLost"):
        write(written, lease=MINE)
    write(written)


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_with_a_lease_that_never_was(written, write):
    with refused(412, "LeaseNotPresentWithBlobOperation"):
        write(written, lease=MINE)


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_breaking_lease_still_holds(server, written, write):
    written.acquire_lease(60, lease_id=MINE).break_lease(10)
    with refused(412, "LeaseIdMissing"):
        write(written)
    write(written, lease=MINE)


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_read_needs_no_lease_but_checks_one_that_is_given(server, written, read):
    with refused(412, "LeaseNotPresentWithBlobOperation"):
        read(written, lease=MINE)
    written.acquire_lease(15, lease_id=MINE)
    read(written)
    read(written, lease=MINE)
    with refused(412, "LeaseIdMismatchWithBlobOperation"):
        read(written, lease=YOURS)
    server.advance(15)
    read(written)
    with refused(412, "LeaseLost"):
        read(written, lease=MINE)


def test_the_lease_stays_on_new_content(blob):
    blob.upload_blob(b"x")
    held = blob.acquire_lease(60)
    blob.upload_blob(b"y", overwrite=True, lease=held)
    assert state(blob) == LEASED_FIXED
    blob.stage_block("b1", b"z", lease=held)
    blob.commit_block_list([BlobBlock("b1")], lease=held)
    assert state(blob) == LEASED_FIXED


def test_a_blob_made_again_is_not_leased(blob):
    blob.upload_blob(b"x")
    blob.delete_blob(lease=blob.acquire_lease())
    blob.upload_blob(b"y")
    assert state(blob) == AVAILABLE


def test_create_only_meets_a_lease(blob):
    """The lease is asked first: without its id the answer is 412, with it the write goes through."""
    blob.upload_blob(b"x")
    blob.acquire_lease(60, lease_id=MINE)
    with refused(412, "LeaseIdMissing"):
        blob.upload_blob(b"y", overwrite=False)
    with refused(412, "LeaseIdMismatchWithBlobOperation"):
        blob.upload_blob(b"y", overwrite=False, lease=YOURS)
    blob.upload_blob(b"y", overwrite=False, lease=MINE)
    assert blob.download_blob().readall() == b"y"


# What a lease keeps out: containers, where only delete is enforced


def test_a_leased_container_is_not_deleted_without_the_lease(container):
    container.acquire_lease(60, lease_id=MINE)
    with refused(412, "LeaseIdMissing"):
        container.delete_container()
    with refused(412, "LeaseIdMismatchWithContainerOperation"):
        container.delete_container(lease=YOURS)
    assert container.exists()
    container.delete_container(lease=MINE)
    assert not container.exists()


def test_everything_else_goes_on_in_a_leased_container(container):
    container.acquire_lease(60, lease_id=MINE)
    container.set_container_metadata({"a": "1"})
    container.set_container_access_policy({})
    container.get_container_properties()
    container.upload_blob("b", b"x")
    container.delete_blob("b")
    assert list(container.list_blobs()) == []


CONTAINER_CALLS = {
    "GetContainerProperties": lambda container, lease: container.get_container_properties(lease=lease),
    "SetContainerMetadata": lambda container, lease: container.set_container_metadata({"a": "1"}, lease=lease),
    "GetContainerAcl": lambda container, lease: container.get_container_access_policy(lease=lease),
    "SetContainerAcl": lambda container, lease: container.set_container_access_policy({}, lease=lease),
}


@pytest.mark.parametrize("call", CONTAINER_CALLS.values(), ids=CONTAINER_CALLS)
def test_an_id_that_is_given_is_checked(server, container, call):
    with refused(412, "LeaseNotPresentWithContainerOperation"):
        call(container, MINE)
    container.acquire_lease(15, lease_id=MINE)
    call(container, MINE)
    with refused(412, "LeaseIdMismatchWithContainerOperation"):
        call(container, YOURS)
    server.advance(15)
    with refused(412, "LeaseLost"):
        call(container, MINE)


def test_an_expired_lease_protects_nothing(server, container):
    container.acquire_lease(15, lease_id=MINE)
    server.advance(15)
    with refused(412, "LeaseLost"):
        container.delete_container(lease=MINE)
    container.delete_container()
