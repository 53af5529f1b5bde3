"""Copies, and blobs made from URLs."""

import hashlib
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import ClientAuthenticationError, ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.storage.blob import BlobBlock

from harness import readable, refused

CONTENT = bytes(range(256)) * 64


@pytest.fixture
def source(container):
    source = container.get_blob_client("dir/söurce 1")
    source.upload_blob(CONTENT, metadata={"a": "1"})
    return source


def test_a_copy_within_the_account(container, source, blob):
    started = blob.start_copy_from_url(source.url)
    assert started["copy_status"] == "success"
    properties = blob.get_blob_properties()
    assert (properties.copy.id, properties.copy.status) == (started["copy_id"], "success")
    assert (properties.copy.source, properties.copy.progress) == (source.url, f"{len(CONTENT)}/{len(CONTENT)}")
    assert (properties.metadata, properties.etag) == ({"a": "1"}, started["etag"])
    source.delete_blob()
    assert blob.download_blob().readall() == CONTENT
    with refused(409, "NoPendingCopyOperation", ResourceExistsError):
        blob.abort_copy(started["copy_id"])
    with refused(404, "CannotVerifyCopySource", ResourceNotFoundError):
        blob.start_copy_from_url(source.url)
    assert blob.download_blob().readall() == CONTENT


def test_a_copy_within_the_request(source, blob):
    done = blob.start_copy_from_url(readable(source), requires_sync=True)
    assert done["copy_status"] == "success"
    assert blob.download_blob().readall() == CONTENT
    with refused(401, "CannotVerifyCopySource", ClientAuthenticationError):
        blob.start_copy_from_url(source.url, requires_sync=True)


def test_conditions_of_both_sides(source, blob):
    blob.upload_blob(b"before")
    with refused(412, "SourceConditionNotMet"):
        blob.start_copy_from_url(source.url, source_etag="0x1", source_match_condition=MatchConditions.IfNotModified)
    with refused(412, "ConditionNotMet", ResourceModifiedError):
        blob.start_copy_from_url(source.url, etag="0x1", match_condition=MatchConditions.IfNotModified)
    source.set_blob_tags({"colour": "blue"})
    with refused(412, "ConditionNotMet", ResourceModifiedError):
        blob.start_copy_from_url(source.url, source_if_tags_match_condition="\"colour\"='red'")
    assert blob.download_blob().readall() == b"before"
    etag = source.get_blob_properties().etag
    blob.start_copy_from_url(source.url, source_etag=etag, source_match_condition=MatchConditions.IfNotModified)
    assert blob.download_blob().readall() == CONTENT


def test_a_blob_from_a_url(source, blob):
    made = blob.upload_blob_from_url(readable(source), metadata={"b": "2"})
    properties = blob.get_blob_properties()
    assert (properties.etag, properties.metadata, properties.copy.id) == (made["etag"], {"b": "2"}, None)
    assert bytes(properties.content_settings.content_md5) == hashlib.md5(CONTENT).digest()
    with pytest.raises(ResourceExistsError):
        blob.upload_blob_from_url(readable(source), overwrite=False)
    assert blob.download_blob().readall() == CONTENT


def test_blocks_from_urls(source, blob):
    url = readable(source)
    blob.stage_block_from_url("1", url, source_offset=1000, source_length=500)
    blob.stage_block_from_url("2", url, source_content_md5=hashlib.md5(CONTENT).digest())
    blob.stage_block("3", b"own")
    with refused(400, "Md5Mismatch"):
        blob.stage_block_from_url("4", url, source_content_md5=hashlib.md5(b"").digest())
    blob.commit_block_list([BlobBlock("1"), BlobBlock("2"), BlobBlock("3")])
    source.delete_blob()
    assert blob.download_blob().readall() == CONTENT[1000:1500] + CONTENT + b"own"


def test_appended_from_a_url(source, blob):
    blob.create_append_blob()
    first = blob.append_block_from_url(readable(source), source_offset=0, source_length=100)
    assert (first["blob_append_offset"], first["blob_committed_block_count"]) == ("0", 1)
    with refused(412, "AppendPositionConditionNotMet"):
        blob.append_block_from_url(readable(source), appendpos_condition=0)
    blob.append_block_from_url(readable(source), appendpos_condition=100)
    assert blob.download_blob().readall() == CONTENT[:100] + CONTENT


def test_pages_from_a_url(source, blob):
    blob.create_page_blob(4096)
    blob.upload_pages_from_url(readable(source), offset=512, length=1024, source_offset=2048)
    assert blob.download_blob().readall() == bytes(512) + CONTENT[2048:3072] + bytes(2560)
    assert [(part.start, part.end) for part in blob.list_page_ranges()] == [(512, 1535)]


class Stalled(BaseHTTPRequestHandler):
    """Sends half, and the rest when it is told to."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        half = len(CONTENT) // 2
        self.wfile.write(CONTENT[:half])
        self.wfile.flush()
        self.server.go_on.wait(60)
        self.wfile.write(CONTENT[half:])

    def log_message(self, *_):
        pass


@contextmanager
def elsewhere():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Stalled)
    server.go_on = threading.Event()
    # Whoever was aborted does not take the rest.
    server.handle_error = lambda *_: None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/source", server.go_on
    server.go_on.set()
    server.shutdown()
    server.server_close()


def test_a_copy_from_elsewhere_goes_on_after_its_answer(blob):
    with elsewhere() as (url, go_on):
        started = blob.start_copy_from_url(url)
        assert started["copy_status"] == "pending"
        with refused(409, "PendingCopyOperation", ResourceExistsError):
            blob.upload_blob(b"new", overwrite=True)
        assert blob.download_blob().readall() == b""
        go_on.set()
        for _ in range(600):
            copy = blob.get_blob_properties().copy
            if copy.status != "pending":
                break
            time.sleep(0.05)
        assert (copy.status, copy.progress) == ("success", f"{len(CONTENT)}/{len(CONTENT)}")
    assert blob.download_blob().readall() == CONTENT


def test_a_copy_from_elsewhere_is_aborted(blob):
    blob.upload_blob(b"before")
    lease = blob.acquire_lease()
    with elsewhere() as (url, _):
        started = blob.start_copy_from_url(url, destination_lease=lease)
        with refused(412, "LeaseIdMissing"):
            blob.abort_copy(started["copy_id"])
        blob.abort_copy(started["copy_id"], lease=lease)
    properties = blob.get_blob_properties()
    assert (properties.copy.status, properties.size, properties.lease.state) == ("aborted", 0, "leased")
