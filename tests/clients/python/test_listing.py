"""List Blobs: flat and by folder, by page, with what was asked for."""

import pytest
from azure.storage.blob import BlobBlock, BlobPrefix, ContentSettings

from harness import refused

NAMES = ["Zebra", "a", "a/1", "a/2", "a/b/1", "a/b/2", "b", "c/1", "d-1", "d/1", "é"]


@pytest.fixture
def filled(container):
    for name in reversed(NAMES):
        container.upload_blob(name, name.encode(), metadata={"n": "1"})
    return container


def names(found):
    return [item.name for item in found]


def test_names_come_in_order(filled):
    assert names(filled.list_blobs()) == NAMES
    assert list(filled.list_blob_names()) == NAMES


@pytest.mark.parametrize("size", [1, 2, 3, 10, 11, 12])
def test_pages_add_up(filled, size):
    pages = [names(page) for page in filled.list_blobs(results_per_page=size).by_page()]
    assert sum(pages, []) == NAMES
    assert all(len(page) <= size for page in pages)


def test_a_listing_goes_on_from_its_marker(filled):
    pages = filled.list_blobs(results_per_page=4).by_page()
    first = names(next(pages))
    rest = filled.list_blobs(results_per_page=4).by_page(pages.continuation_token)
    assert first + [name for page in rest for name in names(page)] == NAMES


def test_a_page_survives_changes_before_it(filled):
    pages = filled.list_blobs(results_per_page=4).by_page()
    assert names(next(pages)) == NAMES[:4]
    filled.delete_blob("a/2")
    filled.upload_blob("A", b"")
    assert [name for page in pages for name in names(page)] == NAMES[4:]


def test_a_prefix_narrows(filled):
    assert names(filled.list_blobs(name_starts_with="a/")) == ["a/1", "a/2", "a/b/1", "a/b/2"]
    assert names(filled.list_blobs(name_starts_with="a/b/2")) == ["a/b/2"]
    assert names(filled.list_blobs(name_starts_with="nothing")) == []


def test_folders_are_rolled_up(filled):
    found = list(filled.walk_blobs(delimiter="/"))
    prefixes = [item.name for item in found if isinstance(item, BlobPrefix)]
    assert prefixes == ["a/", "c/", "d/"]
    assert [item.name for item in found if not isinstance(item, BlobPrefix)] == ["Zebra", "a", "b", "d-1", "é"]
    assert sorted(names(filled.walk_blobs("a/", delimiter="/"))) == ["a/1", "a/2", "a/b/"]
    assert names(filled.walk_blobs("a/b/", delimiter="/")) == ["a/b/1", "a/b/2"]
    assert sorted(names(filled.walk_blobs(delimiter="b"))) == ["Zeb", "a", "a/1", "a/2", "a/b", "b", "c/1", "d-1", "d/1", "é"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8])
def test_rolled_up_pages_add_up(filled, size):
    pages = [names(page) for page in filled.walk_blobs(delimiter="/", results_per_page=size).by_page()]
    assert sorted(sum(pages, [])) == sorted(["Zebra", "a", "a/", "b", "c/", "d-1", "d/", "é"])
    assert all(len(page) <= size for page in pages)


def test_an_entry_says_what_the_blob_says(container, blob):
    settings = ContentSettings("text/plain", "gzip", "de", "inline", "no-cache")
    blob.upload_blob(b"hello", content_settings=settings, metadata={"Mixed": "v"})
    blob.acquire_lease(15)
    properties = blob.get_blob_properties()
    [found] = container.list_blobs(include=["metadata"])
    assert found.etag.strip('"') == properties.etag.strip('"')
    for attribute in ("size", "last_modified", "creation_time", "blob_type", "metadata", "blob_tier"):
        assert getattr(found, attribute) == getattr(properties, attribute), attribute
    for attribute in ("content_type", "content_encoding", "content_language", "cache_control", "content_disposition", "content_md5"):
        assert getattr(found.content_settings, attribute) == getattr(properties.content_settings, attribute), attribute
    assert (found.lease.status, found.lease.state, found.lease.duration) == ("locked", "leased", "fixed")


def test_metadata_only_when_asked_for(filled):
    assert all(not found.metadata for found in filled.list_blobs())
    assert all(found.metadata == {"n": "1"} for found in filled.list_blobs(include="metadata"))


def test_snapshots_only_when_asked_for(container, blob):
    blob.upload_blob(b"x")
    snapshots = [blob.create_snapshot()["snapshot"] for _ in range(3)]
    assert [found.snapshot for found in container.list_blobs()] == [None]
    found = list(container.list_blobs(include=["snapshots"]))
    assert names(found) == [blob.blob_name] * 4
    assert [item.snapshot for item in found if item.snapshot] == snapshots
    pages = container.list_blobs(include=["snapshots"], results_per_page=1).by_page()
    assert len([item for page in pages for item in page]) == 4


def test_uncommitted_blobs_only_when_asked_for(container, blob):
    blob.stage_block("b1", b"x")
    container.upload_blob("other", b"y")
    assert names(container.list_blobs()) == ["other"]
    found = {item.name: item for item in container.list_blobs(include=["uncommittedblobs"])}
    assert set(found) == {"other", blob.blob_name}
    assert found[blob.blob_name].size == 0
    blob.commit_block_list([BlobBlock("b1")])
    assert names(container.list_blobs()) == ["other", blob.blob_name]


def test_characters_that_xml_cannot_hold(container):
    odd = ["control\x01", "amp&<>\"'", "uffff\uffff"]
    for name in odd:
        container.upload_blob(name, b"")
    assert sorted(names(container.list_blobs())) == sorted(odd)


@pytest.mark.parametrize("size", [0, -1])
def test_a_bad_page_size_is_refused(container, size):
    with refused(400, "OutOfRangeQueryParameterValue"):
        next(container.list_blobs(results_per_page=size).by_page())


def test_a_thousand_blobs(container):
    expected = [f"{number:04}" for number in range(1000)]
    for name in expected:
        container.upload_blob(name, b"")
    pages = [names(page) for page in container.list_blobs(results_per_page=300).by_page()]
    assert sum(pages, []) == expected
