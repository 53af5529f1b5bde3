"""Block blobs: content, blocks, properties, metadata, hashes."""

import base64
import hashlib
import random
from types import SimpleNamespace

import pytest
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import BlobBlock, BlobType, ContentSettings

from harness import refused

MIB = 1024 * 1024
# This client compares its own BlockState in another case than it spells it, and so sends all blocks as Latest.
COMMITTED, UNCOMMITTED = SimpleNamespace(value="committed"), SimpleNamespace(value="uncommitted")


def test_a_blob_comes_back_as_it_went_in(blob):
    written = blob.upload_blob(b"hello world")
    properties = blob.get_blob_properties()
    assert blob.download_blob().readall() == b"hello world"
    assert properties.etag == written["etag"]
    assert properties.last_modified == written["last_modified"]
    assert properties.size == 11
    assert properties.blob_type == BlobType.BLOCKBLOB
    assert properties.content_settings.content_type == "application/octet-stream"
    assert bytes(properties.content_settings.content_md5) == hashlib.md5(b"hello world").digest()
    assert properties.server_encrypted
    assert (properties.lease.status, properties.lease.state) == ("unlocked", "available")
    assert blob.exists()


def test_an_empty_blob_is_a_blob(blob):
    blob.upload_blob(b"")
    assert blob.download_blob().readall() == b""
    assert blob.get_blob_properties().size == 0


@pytest.mark.parametrize("name", ["a b", "ü/ß/€", "dir/sub/leaf.txt", "q?x=1&y=2", "per%cent", "hash#tag", "plus+plus", "x" * 1024, "𝄞", "'quote'"])
def test_any_name_comes_back(container, name):
    container.upload_blob(name, name.encode())
    assert [found.name for found in container.list_blobs()] == [name]
    assert container.download_blob(name).readall() == name.encode()


def test_what_is_not_there_is_not_found(blob):
    assert not blob.exists()
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        blob.download_blob()
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        blob.get_blob_properties()
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        blob.set_blob_metadata({"a": "b"})
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        blob.set_http_headers(ContentSettings(content_type="text/plain"))
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        blob.create_snapshot()
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        blob.acquire_lease()
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        blob.delete_blob()


@pytest.mark.parametrize(
    ("offset", "length", "content"),
    [(0, 1, b"0"), (0, 10, b"0123456789"), (3, 4, b"3456"), (9, 1, b"9"), (5, None, b"56789"), (5, 100, b"56789")],
)
def test_a_range_is_read(blob, offset, length, content):
    blob.upload_blob(b"0123456789")
    assert blob.download_blob(offset=offset, length=length).readall() == content


def test_a_range_beyond_the_end_is_refused(blob):
    blob.upload_blob(b"0123456789")
    with refused(416, "InvalidRange"):
        blob.download_blob(offset=10, length=1)


def test_ranges_over_many_blocks_are_read(blob):
    blocks = [bytes([number]) * (1000 + number) for number in range(20)]
    for number, block in enumerate(blocks):
        blob.stage_block(f"{number:03}", block)
    blob.commit_block_list([BlobBlock(f"{number:03}") for number in range(20)])
    whole, dice = b"".join(blocks), random.Random(7)
    for _ in range(30):
        start = dice.randrange(len(whole))
        length = dice.randrange(1, len(whole) - start + 1)
        assert blob.download_blob(offset=start, length=length).readall() == whole[start : start + length]


def test_without_overwrite_the_first_writer_stays(blob):
    blob.upload_blob(b"first")
    with refused(409, "BlobAlreadyExists", ResourceExistsError):
        blob.upload_blob(b"second", overwrite=False)
    assert blob.download_blob().readall() == b"first"


def test_an_overwrite_replaces_everything(blob):
    settings = ContentSettings(content_type="text/plain", cache_control="no-cache")
    before = blob.upload_blob(b"first", metadata={"a": "1"}, content_settings=settings)
    after = blob.upload_blob(b"second, longer", overwrite=True)
    properties = blob.get_blob_properties()
    assert after["etag"] != before["etag"]
    assert blob.download_blob().readall() == b"second, longer"
    assert properties.metadata == {}
    assert properties.content_settings.content_type == "application/octet-stream"
    assert not properties.content_settings.cache_control


def test_metadata_is_replaced_whole(blob):
    blob.upload_blob(b"x", metadata={"Mixed_Case": "Value with spaces", "n": "1"})
    before = blob.get_blob_properties()
    assert before.metadata == {"Mixed_Case": "Value with spaces", "n": "1"}
    answer = blob.set_blob_metadata({"other": "2"})
    after = blob.get_blob_properties()
    assert after.metadata == {"other": "2"}
    assert after.etag == answer["etag"] != before.etag
    assert blob.download_blob().properties.metadata == {"other": "2"}


def test_http_headers_are_kept(blob):
    md5 = hashlib.md5(b"x").digest()
    settings = ContentSettings("text/plain; charset=utf-8", "gzip", "de", "attachment; filename=a.txt", "max-age=60", md5)
    blob.upload_blob(b"x", content_settings=settings)
    found = blob.get_blob_properties().content_settings
    assert (found.content_type, found.content_encoding, found.content_language) == ("text/plain; charset=utf-8", "gzip", "de")
    assert (found.content_disposition, found.cache_control) == ("attachment; filename=a.txt", "max-age=60")
    assert bytes(found.content_md5) == md5


def test_http_headers_are_set_together(blob):
    blob.upload_blob(b"x", content_settings=ContentSettings("text/plain", cache_control="max-age=60"), metadata={"a": "1"})
    before = blob.get_blob_properties()
    blob.set_http_headers(ContentSettings(content_language="fr"))
    after = blob.get_blob_properties()
    assert after.content_settings.content_language == "fr"
    assert not after.content_settings.cache_control
    assert after.metadata == {"a": "1"}
    assert after.etag != before.etag
    assert blob.download_blob().readall() == b"x"


def test_a_deleted_blob_is_gone(blob):
    blob.upload_blob(b"x")
    blob.delete_blob()
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        blob.download_blob()
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        blob.delete_blob()


def test_an_etag_never_comes_back(blob):
    seen = set()
    for _ in range(5):
        seen.add(blob.upload_blob(b"same")["etag"])
        seen.add(blob.set_blob_metadata({"same": "same"})["etag"])
        blob.delete_blob()
    assert len(seen) == 10


def test_checked_content_goes_both_ways(blob):
    content = random.Random(1).randbytes(100_000)
    blob.upload_blob(content, validate_content=True)
    assert blob.download_blob(validate_content=True).readall() == content
    assert blob.download_blob(offset=10, length=1000, validate_content=True).readall() == content[10:1010]


def test_a_wrong_md5_stores_nothing(blob):
    wrong = base64.b64encode(hashlib.md5(b"other").digest()).decode()
    with refused(400, "Md5Mismatch"):
        blob.upload_blob(b"x", headers={"Content-MD5": wrong})
    with refused(404, "BlobNotFound", ResourceNotFoundError):
        blob.get_blob_properties()
    with refused(400, "Md5Mismatch"):
        blob.stage_block("a", b"x", headers={"Content-MD5": wrong})
    with refused(400, "InvalidMd5"):
        blob.upload_blob(b"x", headers={"Content-MD5": "c2hvcnQ="})


def test_blocks_are_seen_when_committed(container, blob):
    blob.stage_block("b1", b"one")
    blob.stage_block("b2", b"two!", validate_content=True)
    assert not blob.exists()
    assert list(container.list_blobs()) == []
    committed, uncommitted = blob.get_block_list("all")
    assert committed == [] and [(block.id, block.size) for block in uncommitted] == [("b1", 3), ("b2", 4)]

    settings = ContentSettings(content_type="text/plain")
    blob.commit_block_list([BlobBlock("b2"), BlobBlock("b1")], metadata={"a": "1"}, content_settings=settings)
    properties = blob.get_blob_properties()
    assert blob.download_blob().readall() == b"two!one"
    assert (properties.metadata, properties.content_settings.content_type) == ({"a": "1"}, "text/plain")
    committed, uncommitted = blob.get_block_list("all")
    assert [(block.id, block.size) for block in committed] == [("b2", 4), ("b1", 3)] and uncommitted == []


def test_staging_changes_nothing_that_readers_see(blob):
    before = blob.upload_blob(b"old")
    blob.stage_block("b1", b"new")
    properties = blob.get_blob_properties()
    assert properties.etag == before["etag"]
    assert properties.last_modified == before["last_modified"]
    assert blob.download_blob().readall() == b"old"


def test_each_block_list_shows_its_own(blob):
    blob.stage_block("b1", b"1")
    blob.commit_block_list([BlobBlock("b1")])
    blob.stage_block("b2", b"22")
    names = lambda kind: tuple([block.id for block in blocks] for blocks in blob.get_block_list(kind))
    assert names("committed") == (["b1"], [])
    assert names("uncommitted") == ([], ["b2"])
    assert names("all") == (["b1"], ["b2"])


def test_a_commit_chooses_between_old_and_new(blob):
    blob.stage_block("b1", b"old")
    blob.commit_block_list([BlobBlock("b1")])
    blob.stage_block("b1", b"new")
    blob.commit_block_list([BlobBlock("b1", COMMITTED)])
    assert blob.download_blob().readall() == b"old"
    blob.stage_block("b1", b"new")
    blob.commit_block_list([BlobBlock("b1"), BlobBlock("b1")])
    assert blob.download_blob().readall() == b"newnew"
    blob.stage_block("b2", b"more")
    blob.commit_block_list([BlobBlock("b1", COMMITTED), BlobBlock("b2", UNCOMMITTED)])
    assert blob.download_blob().readall() == b"newmore"
    with refused(400, "InvalidBlockList"):
        blob.commit_block_list([BlobBlock("b1", UNCOMMITTED)])
    assert blob.download_blob().readall() == b"newmore"


def test_a_commit_drops_the_blocks_it_does_not_name(blob):
    blob.stage_block("b1", b"1")
    blob.stage_block("b2", b"2")
    blob.commit_block_list([BlobBlock("b1")])
    assert blob.get_block_list("uncommitted")[1] == []
    with refused(400, "InvalidBlockList"):
        blob.commit_block_list([BlobBlock("b1"), BlobBlock("b2")])
    assert blob.download_blob().readall() == b"1"


def test_a_commit_with_an_unknown_block_changes_nothing(blob):
    blob.upload_blob(b"old")
    blob.stage_block("b1", b"1")
    with refused(400, "InvalidBlockList"):
        blob.commit_block_list([BlobBlock("b1"), BlobBlock("no")])
    assert blob.download_blob().readall() == b"old"
    assert [block.id for block in blob.get_block_list("uncommitted")[1]] == ["b1"]


def test_the_last_upload_of_a_block_counts(blob):
    blob.stage_block("b1", b"first")
    blob.stage_block("b1", b"second")
    assert [(block.id, block.size) for block in blob.get_block_list("uncommitted")[1]] == [("b1", 6)]
    blob.commit_block_list([BlobBlock("b1")])
    assert blob.download_blob().readall() == b"second"


def test_block_ids_have_one_length(blob):
    blob.stage_block("b1", b"1")
    with refused(400, "InvalidBlobOrBlock"):
        blob.stage_block("longer", b"2")


def test_an_empty_block_list_makes_an_empty_blob(blob):
    blob.commit_block_list([])
    assert blob.download_blob().readall() == b""


def test_put_blob_drops_staged_blocks(blob):
    blob.stage_block("b1", b"1")
    blob.upload_blob(b"whole")
    assert blob.get_block_list("uncommitted")[1] == []


def test_staged_blocks_are_kept_for_a_week(server, blob):
    day = 24 * 3600
    blob.stage_block("b1", b"1")
    server.advance(6 * day)
    blob.stage_block("b2", b"2")
    server.advance(6 * day)
    assert [block.id for block in blob.get_block_list("uncommitted")[1]] == ["b1", "b2"]
    server.advance(2 * day)
    with refused(400, "InvalidBlockList"):
        blob.commit_block_list([BlobBlock("b1")])


def test_a_large_blob_in_many_blocks(server):
    service = server.service(max_single_put_size=MIB, max_block_size=MIB, max_single_get_size=MIB, max_chunk_get_size=MIB)
    blob = service.create_container("box").get_blob_client("large")
    content = random.Random(20).randbytes(20 * MIB)
    blob.upload_blob(content, max_concurrency=4, validate_content=True)
    assert [block.size for block in blob.get_block_list("committed")[0]] == [MIB] * 20
    stream = blob.download_blob(max_concurrency=4)
    assert stream.size == 20 * MIB
    assert hashlib.sha256(stream.readall()).digest() == hashlib.sha256(content).digest()
    assert blob.download_blob(offset=7 * MIB - 5, length=10).readall() == content[7 * MIB - 5 : 7 * MIB + 5]


def test_a_large_blob_in_one_piece(blob):
    content = random.Random(21).randbytes(20 * MIB)
    blob.upload_blob(content)
    assert hashlib.sha256(blob.download_blob().readall()).digest() == hashlib.sha256(content).digest()
    assert bytes(blob.get_blob_properties().content_settings.content_md5) == hashlib.md5(content).digest()
