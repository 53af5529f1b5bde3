"""Copies into files through azure-storage-file-share: from files, blobs and elsewhere; ranges from URLs; and files as sources of blobs."""

import threading
import time
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.fileshare import ContentSettings, generate_file_sas

from harness import ACCOUNT, KEY, readable, refused

CONTENT = bytes(range(256)) * 64
PATIENCE = 120


@pytest.fixture
def share(server):
    return server.shares().create_share("docs")


@pytest.fixture
def source(share):
    share.create_directory("dir")
    source = share.get_file_client("dir/söurce 1")
    source.upload_file(CONTENT, metadata={"a": "1"}, content_settings=ContentSettings(content_type="text/plain"))
    return source


def signed(file, permission="r"):
    signature = generate_file_sas(
        ACCOUNT, file.share_name, file.file_path, KEY, permission=permission, expiry=datetime.now(timezone.utc) + timedelta(hours=1)
    )
    return f"{file.url}?{signature}"


def ended(server, file):
    """The properties of a file whose copy has ended; the time of the server passes meanwhile."""
    limit = time.monotonic() + PATIENCE
    while (found := file.get_file_properties()).copy.status == "pending":
        assert time.monotonic() < limit, found.copy.progress
        server.advance(1)
        time.sleep(0.02)
    return found


@contextmanager
def stalled():
    """A source elsewhere that gives half of its bytes until it is told to give all."""
    go_on = threading.Event()

    class Source(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.send_header("ETag", '"1"')
            self.end_headers()
            self.wfile.write(CONTENT[: len(CONTENT) // 2])
            self.wfile.flush()
            if go_on.wait(PATIENCE):
                self.wfile.write(CONTENT[len(CONTENT) // 2 :])

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Source)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/source", go_on
    finally:
        go_on.set()
        server.shutdown()


def test_a_copy_within_the_account(share, source):
    file = share.get_file_client("copy")
    started = file.start_copy_from_url(source.url)
    assert started["copy_status"] == "success"
    found = file.get_file_properties()
    assert (found.copy.id, found.copy.status) == (started["copy_id"], "success")
    assert (found.copy.source, found.copy.progress) == (source.url, f"{len(CONTENT)}/{len(CONTENT)}")
    assert (found.metadata, found.etag, found.content_settings.content_type) == ({"a": "1"}, started["etag"], "text/plain")
    source.delete_file()
    assert file.download_file().readall() == CONTENT
    with refused(409, "NoPendingCopyOperation", ResourceExistsError):
        file.abort_copy(started["copy_id"])
    with refused(404, "CannotVerifyCopySource", ResourceNotFoundError):
        file.start_copy_from_url(source.url)
    assert file.download_file().readall() == CONTENT


def test_properties_are_those_of_the_source_or_those_that_are_given(share, source):
    given = datetime(2020, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    source.set_http_headers(
        ContentSettings(content_type="a/b"), file_attributes="Hidden", file_creation_time=given, file_last_write_time=given
    )
    file = share.get_file_client("copy")
    words = ["file_attributes", "file_creation_time", "file_last_write_time", "file_permission"]
    file.start_copy_from_url(source.url, **{word: "source" for word in words})
    before, after = source.get_file_properties(), file.get_file_properties()
    for name in ["file_attributes", "creation_time", "last_write_time", "permission_key"]:
        assert after[name] == before[name], name
    file.start_copy_from_url(source.url, file_attributes="ReadOnly", set_archive_attribute=True, metadata={"b": "2"})
    after = file.get_file_properties()
    assert (after.file_attributes, after.metadata) == ("ReadOnly | Archive", {"b": "2"})
    with refused(409, "ReadOnlyAttribute"):
        file.start_copy_from_url(source.url)
    file.start_copy_from_url(source.url, ignore_read_only=True)


def test_a_copy_of_a_blob(server, container, share):
    blob = container.get_blob_client("blob")
    blob.upload_blob(CONTENT, metadata={"a": "1"})
    file = share.get_file_client("copy")
    file.start_copy_from_url(readable(blob))
    assert ended(server, file).copy.status == "success"
    blob.delete_blob()
    assert file.download_file().readall() == CONTENT
    assert file.get_file_properties().metadata == {"a": "1"}


def test_a_blob_of_a_file(container, source):
    copy = container.get_blob_client("copy")
    assert copy.start_copy_from_url(signed(source))["copy_status"] == "success"
    put = container.get_blob_client("put")
    put.upload_blob_from_url(signed(source))
    for blob in [copy, put]:
        assert blob.download_blob().readall() == CONTENT
        assert blob.get_blob_properties().metadata == {"a": "1"}


def test_a_copy_from_elsewhere_is_aborted_or_ends(server, share):
    file = share.get_file_client("copy")
    with stalled() as (url, go_on):
        started = file.start_copy_from_url(url)
        assert started["copy_status"] == "pending"
        with refused(409, "PendingCopyOperation"):
            file.delete_file()
        file.abort_copy(started["copy_id"])
        found = file.get_file_properties()
        assert (found.copy.status, found.size) == ("aborted", 0)
        started = file.start_copy_from_url(url)
        with refused(409, "CopyIdMismatch"):
            file.abort_copy("aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa")
        go_on.set()
        assert ended(server, file).copy.status == "success"
    assert file.download_file().readall() == CONTENT


def test_ranges_from_a_url(server, container, share, source):
    file = share.create_directory("to").create_subdirectory("below").get_file_client("file")
    file.create_file(3_000)
    blob = container.get_blob_client("blob")
    blob.upload_blob(CONTENT)
    for at, url in enumerate([signed(source), readable(blob)]):
        answer = file.upload_range_from_url(url, offset=1_000 * at, length=600, source_offset=50)
        assert answer["content_crc64"] is not None
    expected = bytearray(3_000)
    expected[:600] = expected[1_000:1_600] = CONTENT[50:650]
    assert file.download_file().readall() == bytes(expected)
    with pytest.raises(HttpResponseError) as error:
        file.upload_range_from_url(source.url, offset=0, length=10, source_offset=0)
    assert (error.value.status_code, error.value.error_code) == (401, "CannotVerifyCopySource")
