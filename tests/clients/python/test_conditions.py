"""Conditional headers: which state of a blob a request is meant for."""

import threading
from datetime import timedelta

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceModifiedError, ResourceNotFoundError
from azure.storage.blob import BlobBlock, ContentSettings

from harness import refused

STALE = '"0x8D0000000000000"'
SAME = {"match_condition": MatchConditions.IfNotModified}
OTHER = {"match_condition": MatchConditions.IfModified}

WRITES = {
    "PutBlob": lambda blob, **when: blob.upload_blob(b"y", overwrite=True, **when),
    "PutBlockList": lambda blob, **when: blob.commit_block_list([BlobBlock("b1")], **when),
    "SetBlobMetadata": lambda blob, **when: blob.set_blob_metadata({"a": "1"}, **when),
    "SetBlobProperties": lambda blob, **when: blob.set_http_headers(ContentSettings("text/plain"), **when),
    "SnapshotBlob": lambda blob, **when: blob.create_snapshot(**when),
    "LeaseBlob": lambda blob, **when: blob.acquire_lease(15, **when),
    "DeleteBlob": lambda blob, **when: blob.delete_blob(**when),
}
READS = {
    "GetBlob": lambda blob, **when: blob.download_blob(**when),
    "GetBlobProperties": lambda blob, **when: blob.get_blob_properties(**when),
}


@pytest.fixture
def written(server, blob):
    blob.upload_blob(b"x")
    blob.stage_block("b1", b"staged")
    server.advance(100)  # So that dates around the write are in the past.
    return blob


each_write = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
each_read = pytest.mark.parametrize("read", READS.values(), ids=READS)


@each_write
def test_a_write_if_unchanged(written, write):
    with refused(412, "ConditionNotMet", ResourceModifiedError):
        write(written, etag=STALE, **SAME)
    write(written, etag=written.get_blob_properties().etag, **SAME)


@each_write
def test_a_write_if_changed(written, write):
    with refused(412, "ConditionNotMet", ResourceModifiedError):
        write(written, etag=written.get_blob_properties().etag, **OTHER)
    write(written, etag=STALE, **OTHER)


@each_write
def test_a_write_if_modified_since(written, write):
    changed = written.get_blob_properties().last_modified
    with refused(412, "ConditionNotMet", ResourceModifiedError):
        write(written, if_modified_since=changed)
    write(written, if_modified_since=changed - timedelta(seconds=1))


@each_write
def test_a_write_if_unmodified_since(written, write):
    changed = written.get_blob_properties().last_modified
    with refused(412, "ConditionNotMet", ResourceModifiedError):
        write(written, if_unmodified_since=changed - timedelta(seconds=1))
    write(written, if_unmodified_since=changed)


@each_write
def test_a_refused_write_changes_nothing(written, write):
    before = written.get_blob_properties()
    with refused(412, "ConditionNotMet", ResourceModifiedError):
        write(written, etag=STALE, **SAME)
    after = written.get_blob_properties()
    assert (after.etag, after.metadata, after.lease.state) == (before.etag, before.metadata, before.lease.state)
    assert written.download_blob().readall() == b"x"


@each_read
def test_a_read_if_unchanged(written, read):
    with refused(412, "ConditionNotMet", ResourceModifiedError):
        read(written, etag=STALE, **SAME)
    read(written, etag=written.get_blob_properties().etag, **SAME)


@each_read
def test_a_read_if_changed(written, read):
    etag = written.get_blob_properties().etag
    with refused(304, "ConditionNotMet"):
        read(written, etag=etag, **OTHER)
    read(written, etag=STALE, **OTHER)


@each_read
def test_a_read_by_date(written, read):
    changed = written.get_blob_properties().last_modified
    with refused(304, "ConditionNotMet"):
        read(written, if_modified_since=changed)
    read(written, if_modified_since=changed - timedelta(seconds=1))
    with refused(412, "ConditionNotMet"):
        read(written, if_unmodified_since=changed - timedelta(seconds=1))
    read(written, if_unmodified_since=changed)


@each_read
def test_a_read_with_two_conditions(written, read):
    """One of the "changed" pair suffices, and a failed "unchanged" beats them."""
    found = written.get_blob_properties()
    before = found.last_modified - timedelta(seconds=1)
    read(written, etag=found.etag, if_modified_since=before, **OTHER)
    read(written, etag=STALE, if_modified_since=found.last_modified, **OTHER)
    with refused(304, "ConditionNotMet"):
        read(written, etag=found.etag, if_modified_since=found.last_modified, **OTHER)
    with refused(412, "ConditionNotMet"):
        read(written, etag=STALE, if_modified_since=found.last_modified, **SAME)


@each_read
def test_a_missing_blob_is_missing_whatever_the_condition(blob, read):
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        read(blob, etag=STALE, **SAME)
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        read(blob, etag=STALE, **OTHER)


def test_a_missing_blob_has_no_state_to_match(blob):
    with refused(412, "ConditionNotMet", ResourceModifiedError):
        blob.upload_blob(b"x", overwrite=True, etag=STALE, **SAME)
    assert not blob.exists()
    with refused(412, "ConditionNotMet"):
        blob.upload_blob(b"x", overwrite=True, match_condition=MatchConditions.IfPresent)
    assert not blob.exists()
    blob.upload_blob(b"x", match_condition=MatchConditions.IfMissing)
    blob.upload_blob(b"y", overwrite=True, match_condition=MatchConditions.IfPresent)


def test_commit_only_if_missing(written):
    with refused(409, "BlobAlreadyExists"):
        written.commit_block_list([BlobBlock("b1")], match_condition=MatchConditions.IfMissing)


def test_two_kinds_of_condition_on_a_write_are_refused(written):
    found = written.get_blob_properties()
    with refused(400, "MultipleConditionHeadersNotSupported"):
        written.set_blob_metadata({}, etag=found.etag, if_modified_since=found.last_modified, **SAME)


def test_a_condition_comes_before_the_lease(written):
    written.acquire_lease(60)
    with refused(412, "ConditionNotMet"):
        written.set_blob_metadata({"a": "1"}, etag=STALE, **SAME)


def test_a_download_notices_a_change(server):
    """A client reads a large blob range by range, each if unchanged; it must not stitch two versions together."""
    service = server.service(max_single_get_size=1024, max_chunk_get_size=1024)
    blob = service.create_container("box").get_blob_client("b")
    blob.upload_blob(b"a" * 4096)
    stream = blob.download_blob()
    blob.upload_blob(b"b" * 4096, overwrite=True)
    with refused(412, "ConditionNotMet", HttpResponseError):
        stream.readall()


def test_one_winner_for_each_version(server):
    """Eight writers count up one blob, each if unchanged: no step is lost, none is made twice."""
    server.service().create_container("box").upload_blob("counter", b"0")
    rounds, won = 10, []

    def count():
        blob = server.service().get_blob_client("box", "counter")
        done = 0
        while done < rounds:
            stream = blob.download_blob()
            value = int(stream.readall())
            try:
                blob.upload_blob(str(value + 1), overwrite=True, etag=stream.properties.etag, **SAME)
            except ResourceModifiedError:
                continue
            won.append(value + 1)
            done += 1

    writers = [threading.Thread(target=count) for _ in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(won) == list(range(1, 8 * rounds + 1))
    assert server.service().get_blob_client("box", "counter").download_blob().readall() == str(8 * rounds).encode()
