"""Shares, directories and files through azure-storage-file-share: trees, names, renames, ranges, leases, listings, permissions."""

import base64
import os
import threading
from datetime import datetime, timedelta, timezone

import pytest
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.storage.fileshare import (
    AccessPolicy, ContentSettings, CorsRule, Metrics, NTFSAttributes, RetentionPolicy, ShareLeaseClient, ShareSasPermissions,
)

from harness import refused
from trees import HOSTILE, MIB, digest, digests, parents, tree

TIB = 1024**4
SDDL = (
    "O:S-1-5-21-2127521184-1604012920-1887927527-21560751G:S-1-5-21-2127521184-1604012920-1887927527-513"
    "D:AI(A;;FA;;;SY)(A;;FA;;;BA)(A;;0x1200a9;;;S-1-5-21-397955417-626881126-188441444-3053964)S:NO_ACCESS_CONTROL"
)


@pytest.fixture
def shares(server):
    return server.shares()


@pytest.fixture
def share(shares):
    return shares.create_share("docs")


def names(share, path=None, **more):
    found = share.get_directory_client(path).list_directories_and_files(**more)
    return [entry.name + ("/" if entry.is_directory else "") for entry in found]


def pairs(file, **more):
    """The ranges of a file: first and last bytes."""
    return [(found.start, found.end) for found in file.list_ranges(**more)]


# Shares.


def test_a_share_from_its_creation_to_its_end(shares):
    share = shares.create_share("docs", metadata={"Colour": "blue"}, quota=7, access_tier="Hot")
    seen = share.get_share_properties()
    assert (seen.metadata, seen.quota, seen.access_tier) == ({"Colour": "blue"}, 7, "Hot")
    with refused(409, "ShareAlreadyExists", ResourceExistsError):
        shares.create_share("docs")
    share.set_share_quota(9)
    share.set_share_metadata({"Size": "2"})
    share.set_share_properties(access_tier="Cool")
    seen = share.get_share_properties()
    assert (seen.metadata, seen.quota, seen.access_tier) == ({"Size": "2"}, 9, "Cool")
    assert share.get_share_stats() == 0
    share.delete_share()
    with refused(404, "ShareNotFound", ResourceNotFoundError):
        share.get_share_properties()


def test_shares_are_listed_in_pages(shares):
    found = [f"share-{number}" for number in range(7)]
    for name in reversed(found):
        shares.create_share(name, metadata={"n": name})
    shares.create_share("other")
    listed = list(shares.list_shares(name_starts_with="share", include_metadata=True, results_per_page=3))
    assert [(one.name, one.metadata) for one in listed] == [(name, {"n": name}) for name in found]
    assert len(list(shares.list_shares())) == 8


def test_a_deleted_share_comes_back(server, shares, share):
    server.keep_deleted_shares(5)
    share.get_file_client("kept").upload_file(b"content")
    share.delete_share()
    assert list(shares.list_shares()) == []
    gone = list(shares.list_shares(include_deleted=True))
    assert [(one.name, one.deleted, one.remaining_retention_days) for one in gone] == [("docs", True, 5)]
    shares.undelete_share("docs", gone[0].version)
    assert share.get_file_client("kept").download_file().readall() == b"content"


def test_settings(shares):
    settings = shares.get_service_properties()
    assert (settings["cors"], settings["hour_metrics"].enabled) == ([], False)
    hours = Metrics(enabled=True, include_apis=True, retention_policy=RetentionPolicy(True, 5))
    shares.set_service_properties(hour_metrics=hours, cors=[CorsRule(["http://page"], ["GET"], max_age_in_seconds=5)])
    settings = shares.get_service_properties()
    assert settings["hour_metrics"].retention_policy.days == 5
    assert settings["cors"][0].allowed_origins == "http://page"


def test_policies_of_a_share(share):
    now = datetime.now(timezone.utc)
    policy = AccessPolicy(permission=ShareSasPermissions(read=True, list=True), start=now, expiry=now + timedelta(hours=1))
    share.set_share_access_policy({"readers": policy, "empty": AccessPolicy()})
    seen = share.get_share_access_policy()["signed_identifiers"]
    assert [one.id for one in seen] == ["readers", "empty"]
    assert seen[0].access_policy.permission == "rl"
    share.set_share_access_policy({})
    assert share.get_share_access_policy()["signed_identifiers"] == []


def test_a_share_that_is_full(share):
    share.set_share_quota(1)
    share.get_file_client("most").create_file(1024**3 - 1)
    with refused(403, "ShareSizeLimitReached"):
        share.get_file_client("more").create_file(2)
    share.get_file_client("last").create_file(1)
    assert share.get_share_stats() == 1024**3
    share.get_file_client("none").create_file(0)
    with refused(403, "ShareSizeLimitReached"):
        share.get_file_client("none").resize_file(1)
    share.get_file_client("most").delete_file()
    share.get_file_client("none").resize_file(5)
    assert share.get_share_stats() == 6


# Trees.


def upload(share, files, **more):
    made = set()
    for path, content in files.items():
        for above in parents(path):
            if above not in made:
                share.create_directory(above)
                made.add(above)
        if content is not None:
            share.get_file_client(path).upload_file(content, **more)


def download(share, path="", **more):
    """Everything below a directory: contents by path, directories with a slash if nothing is in them."""
    found = {}
    for entry in share.get_directory_client(path or None).list_directories_and_files(results_per_page=5):
        below = f"{path}/{entry.name}" if path else entry.name
        if not entry.is_directory:
            found[below] = share.get_file_client(below).download_file(**more).readall()
            assert entry.size == len(found[below])
            continue
        inside = download(share, below, **more)
        found.update(inside or {below + "/": None})
    return found


@pytest.mark.parametrize("connections", [1, 4])
def test_a_tree_goes_up_and_comes_down(share, connections):
    files = tree()
    upload(share, files, max_concurrency=connections)
    expected = digests({path: content for path, content in files.items() if path != "nothing/"})
    assert digests(download(share, max_concurrency=connections)) == expected
    assert share.get_share_stats() == sum(len(content) for content in files.values() if content is not None)
    # Up again over what is there, with other contents.
    changed = {path: content and content[::-1] for path, content in files.items()}
    for path, content in changed.items():
        if content is not None:
            share.get_file_client(path).upload_file(content, max_concurrency=connections)
    assert digests(download(share)) == {
        path: digest(content) for path, content in changed.items() if path != "nothing/"
    }


def test_contents_are_checked_on_the_way(share):
    file = share.get_file_client("file")
    content = os.urandom(5 * MIB)
    file.upload_file(content, validate_content=True)
    assert file.download_file(validate_content=True).readall() == content
    assert file.download_file(offset=MIB, length=1000, validate_content=True).readall() == content[MIB : MIB + 1000]
    with open(os.devnull, "wb") as nowhere:
        assert file.download_file().readinto(nowhere) == len(content)
    assert b"".join(file.download_file().chunks()) == content


def test_uploads_from_everything_that_reads(share, tmp_path):
    content = os.urandom(5 * MIB + 7)
    (tmp_path / "local").write_bytes(content)
    with open(tmp_path / "local", "rb") as local:
        share.get_directory_client().upload_file("from-file", local)
    share.get_file_client("from-parts").upload_file(iter([content[:100], content[100:]]), length=len(content))
    share.get_file_client("from-text").upload_file("grüße")
    assert share.get_file_client("from-file").download_file().readall() == content
    assert share.get_file_client("from-parts").download_file().readall() == content
    assert share.get_file_client("from-text").download_file(encoding="utf-8").readall() == "grüße"


def test_a_file_is_made_with_its_content(share):
    file = share.get_file_client("file")
    file.create_file(10, data=b"0123456789")
    assert file.download_file().readall() == b"0123456789"
    file.create_file(2_000, data=b"begin")
    assert file.download_file().readall() == b"begin" + bytes(1_995)


# Names.


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(share, name):
    inner = share.create_directory(name).get_file_client(name)
    inner.upload_file(name.encode())
    assert names(share) == [name + "/"] and names(share, name) == [name]
    assert share.get_file_client(f"{name}/{name}").download_file().readall() == name.encode()
    assert inner.get_file_properties().size == len(name.encode())
    moved = inner.rename_file(f"{name}/renamed {name}")
    assert moved.download_file().readall() == name.encode()
    share.get_directory_client(name).rename_directory(f"moved {name}")
    assert share.get_file_client(f"moved {name}/renamed {name}").download_file().readall() == name.encode()
    assert names(share, name_starts_with=f"moved {name}") == [f"moved {name}/"]


def test_case_does_not_count_but_is_kept(share):
    share.create_directory("MyDir").upload_file("ReadMe.TXT", b"x")
    assert names(share, "mydir") == ["ReadMe.TXT"]
    assert share.get_file_client("MYDIR/README.txt").download_file().readall() == b"x"
    with refused(409, "ResourceAlreadyExists", ResourceExistsError):
        share.create_directory("mydir")
    with refused(409, "ResourceAlreadyExists", ResourceExistsError):
        share.create_directory("mydir/readme.txt")


def test_dots_at_the_end(server, share):
    share.get_file_client("file...").upload_file(b"stripped")
    assert names(share) == ["file"]
    keeping = server.shares(allow_trailing_dot=True, allow_source_trailing_dot=True).get_share_client("docs")
    keeping.get_file_client("file...").upload_file(b"kept")
    assert names(share) == ["file", "file..."]
    assert keeping.get_file_client("file...").download_file().readall() == b"kept"
    keeping.get_file_client("file...").rename_file("other.")
    assert names(share) == ["file", "other."]


@pytest.mark.parametrize("name", ["a:b", "a|b", "a*b", "a<b>", 'a"b', "NUL", "con", "a\u0001b"])
def test_names_that_are_none(share, name):
    with refused(400, "InvalidResourceName"):
        share.get_file_client(name).create_file(1)
    with refused(400, "InvalidResourceName"):
        share.create_directory(name)


# Directories and files.


def test_a_directory_from_its_creation_to_its_end(share):
    directory = share.get_directory_client("dir")
    assert not directory.exists()
    made = directory.create_directory(metadata={"Colour": "blue"}, file_attributes="Hidden")
    assert directory.exists()
    with refused(409, "ResourceAlreadyExists", ResourceExistsError):
        directory.create_directory()
    seen = directory.get_directory_properties()
    assert (seen.metadata, seen.etag, seen.file_id) == ({"Colour": "blue"}, made["etag"], made["file_id"])
    assert sorted(str(seen.file_attributes).replace(" ", "").split("|")) == ["Directory", "Hidden"]
    directory.set_directory_metadata({"Size": "2"})
    directory.set_http_headers(file_attributes="System", file_creation_time=datetime(2020, 1, 2, tzinfo=timezone.utc))
    seen = directory.get_directory_properties()
    assert (seen.metadata, seen.creation_time.year) == ({"Size": "2"}, 2020)
    inner = directory.create_subdirectory("inner")
    inner.upload_file("file", b"x")
    with refused(409, "DirectoryNotEmpty", ResourceExistsError):
        directory.delete_directory()
    inner.delete_file("file")
    directory.delete_subdirectory("inner")
    directory.delete_directory()
    with refused(404, "ResourceNotFound", ResourceNotFoundError):
        directory.get_directory_properties()
    with refused(404, "ParentNotFound", ResourceNotFoundError):
        directory.get_file_client("file").create_file(1)


def test_properties_of_a_file(share):
    file = share.get_file_client("file")
    assert not file.exists()
    written = datetime(2021, 2, 3, 4, 5, 6, 123456, tzinfo=timezone.utc)
    settings = ContentSettings("text/plain", "gzip", "de", "inline", "no-store", bytearray(16))
    file.create_file(
        100, content_settings=settings, metadata={"Colour": "blue"}, file_attributes=NTFSAttributes(read_only=False, hidden=True),
        file_creation_time=written - timedelta(days=1), file_last_write_time=written,
    )
    assert file.exists()
    seen = file.get_file_properties()
    assert (seen.metadata, seen.size, seen.content_settings) == ({"Colour": "blue"}, 100, settings)
    assert (seen.creation_time, seen.last_write_time) == (written - timedelta(days=1), written)
    assert sorted(str(seen.file_attributes).replace(" ", "").split("|")) == ["Archive", "Hidden"]
    assert share.get_permission_for_share(seen.permission_key).startswith("O:")
    file.set_file_metadata({"Size": "2"})
    file.set_http_headers(ContentSettings("text/html"))
    seen = file.get_file_properties()
    assert (seen.metadata, seen.content_settings.content_type, seen.content_settings.cache_control) == (
        {"Size": "2"}, "text/html", None,
    )
    assert seen.last_write_time == written
    file.delete_file()
    with refused(404, "ResourceNotFound", ResourceNotFoundError):
        file.get_file_properties()


def test_a_read_only_file(share):
    file = share.get_file_client("file")
    file.create_file(10, file_attributes="ReadOnly")
    for attempt in (
        lambda: file.upload_range(b"x", 0, 1), lambda: file.resize_file(5), lambda: file.create_file(3),
    ):
        with refused(409, "ReadOnlyAttribute", ResourceExistsError):
            attempt()
    file.set_http_headers(ContentSettings(), file_attributes="None")
    file.upload_range(b"x", 0, 1)
    file.delete_file()


# Renames.


def test_a_file_is_renamed(share):
    share.create_directory("dir")
    file = share.get_file_client("from")
    file.upload_file(b"content", metadata={"a": "1"})
    before = file.get_file_properties()
    moved = file.rename_file("dir/To", metadata={"b": "2"}, content_type="a/b")
    after = moved.get_file_properties()
    assert (moved.download_file().readall(), after.file_id) == (b"content", before.file_id)
    assert (after.creation_time, after.last_write_time) == (before.creation_time, before.last_write_time)
    assert after.etag != before.etag and after.metadata == {"b": "2"} and after.content_settings.content_type == "a/b"
    assert not file.exists() and names(share, "dir") == ["To"]
    other = share.get_file_client("other")
    other.upload_file(b"other")
    with refused(409, "ResourceAlreadyExists", ResourceExistsError):
        other.rename_file("dir/to")
    other.rename_file("dir/to", overwrite=True)
    assert share.get_file_client("dir/to").download_file().readall() == b"other"
    with refused(404, "ResourceNotFound", ResourceNotFoundError):
        other.rename_file("x")
    with refused(404, "ParentNotFound", ResourceNotFoundError):
        share.get_file_client("dir/to").rename_file("none/to")


def test_a_rename_replaces_a_read_only_file_when_told(share):
    share.get_file_client("from").upload_file(b"new")
    share.get_file_client("to").create_file(3, file_attributes="ReadOnly")
    with refused(409, "ReadOnlyAttribute", ResourceExistsError):
        share.get_file_client("from").rename_file("to", overwrite=True)
    moved = share.get_file_client("from").rename_file("to", overwrite=True, ignore_read_only=True)
    assert moved.download_file().readall() == b"new"


def test_a_whole_tree_is_renamed(share):
    files = {path: content for path, content in tree().items() if content is None or len(content) < MIB}
    inside = {f"from/{path}": content for path, content in files.items()}
    upload(share, inside)
    ids = {entry.name: entry.file_id for entry in share.list_directories_and_files("from", include=["timestamps"])}
    share.create_directory("other")
    moved = share.get_directory_client("from").rename_directory("other/to")
    assert digests(download(share, "other/to")) == {
        f"other/to/{path}": digest(content) for path, content in files.items() if path != "nothing/"
    }
    assert {entry.name: entry.file_id for entry in moved.list_directories_and_files(include=["timestamps"])} == ids
    assert names(share) == ["other/"]
    with refused(400, "InvalidInput"):
        moved.rename_directory("other/to/deeper")
    share.create_directory("from")
    with refused(409, "ResourceAlreadyExists", ResourceExistsError):
        moved.rename_directory("from")


# Ranges.


def test_ranges(share):
    file = share.get_file_client("file")
    file.create_file(10_000)
    assert pairs(file) == []
    file.upload_range(b"a" * 5, 1023, 5)
    file.upload_range(b"b" * 1000, 4096, 1000)
    assert pairs(file) == [(512, 1535), (4096, 5119)]
    assert pairs(file, offset=4096, length=512) == [(4096, 4607)]
    file.clear_range(4096, 512)
    assert pairs(file) == [(512, 1535), (4608, 5119)]
    expected = bytearray(10_000)
    expected[1023:1028] = b"a" * 5
    expected[4608:5096] = b"b" * 488
    assert file.download_file().readall() == bytes(expected)
    file.resize_file(1_025)
    assert file.download_file().readall() == bytes(expected[:1_025])
    file.resize_file(2_000)
    assert file.download_file().readall() == bytes(expected[:1_025]) + bytes(975)
    with refused(416, "InvalidRange"):
        file.upload_range(b"xx", 1_999, 2)
    before = file.get_file_properties().last_write_time
    file.upload_range(b"x", 0, 1, file_last_write_mode="Preserve")
    assert file.get_file_properties().last_write_time == before
    file.upload_range(b"x", 0, 1)
    assert file.get_file_properties().last_write_time > before


def test_ranges_come_in_pages(share):
    file = share.get_file_client("file")
    file.create_file(100_000)
    expected = [(number * 4096, number * 4096 + 511) for number in range(20)]
    for start, _ in expected:
        file.upload_range(b"x", start, 1)
    for size in (None, 1, 7, 20, 100):
        assert [(found.start, found.end) for found in file.list_ranges(results_per_page=size)] == expected
    assert [(found.start, found.end) for found in file.list_ranges(offset=4096, length=8192, results_per_page=1)] == expected[1:3]


def test_a_sparse_tebibyte(share):
    file = share.get_file_client("file")
    file.create_file(TIB)
    file.upload_range(b"begin", 0, 5)
    file.upload_range(b"end", TIB - 3, 3)
    assert pairs(file) == [(0, 511), (TIB - 512, TIB - 1)]
    assert file.download_file(offset=TIB - 6, length=6).readall() == b"\0\0\0end"
    assert file.download_file(offset=TIB // 2, length=10 * MIB).readall() == bytes(10 * MIB)
    file.clear_range(0, TIB)
    assert pairs(file) == []
    file.resize_file(4 * TIB)
    assert file.get_file_properties().size == 4 * TIB
    file.delete_file()


def test_sixteen_write_their_ranges(server, share):
    size = 64 * 1024
    share.get_file_client("file").create_file(16 * size)

    def write(number):
        mine = server.shares().get_share_client("docs").get_file_client("file")
        for part in range(16):
            offset = number * size + part * 4096
            mine.upload_range(bytes([number + 1]) * 4096, offset, 4096)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(16)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    content = share.get_file_client("file").download_file(max_concurrency=4).readall()
    assert content == b"".join(bytes([number + 1]) * size for number in range(16))


# Leases.


def test_the_lease_of_a_file(share):
    file = share.get_file_client("file")
    file.create_file(1_024)
    lease = file.acquire_lease()
    assert file.get_file_properties().lease.state == "leased"
    with refused(409, "LeaseAlreadyPresent", ResourceExistsError):
        file.acquire_lease()
    attempts = [
        lambda **key: file.upload_range(b"x", 0, 1, **key), lambda **key: file.clear_range(0, 512, **key),
        lambda **key: file.set_file_metadata({"a": "1"}, **key), lambda **key: file.set_http_headers(ContentSettings("a/b"), **key),
        lambda **key: file.resize_file(600, **key), lambda **key: file.create_file(1_000, **key),
    ]
    for attempt in attempts:
        with refused(412, "LeaseIdMissing"):
            attempt()
    with refused(412, "LeaseIdMismatchWithFileOperation"):
        file.upload_range(b"x", 0, 1, lease="00000000-0000-0000-0000-000000000001")
    for attempt in attempts:
        attempt(lease=lease)
    assert file.get_file_properties().lease.state == "leased", "it survives a new content"
    old = lease.id
    lease.change("11111111-2222-3333-4444-555555555555")
    assert lease.id != old
    with refused(412, "LeaseIdMismatchWithFileOperation"):
        file.delete_file(lease=old)
    moved = file.rename_file("moved", source_lease=lease)
    lease = ShareLeaseClient(moved, lease.id)
    lease.release()
    moved.acquire_lease()
    assert ShareLeaseClient(moved).break_lease() == 0
    assert moved.get_file_properties().lease.state == "broken"
    moved.delete_file()


def test_the_lease_of_a_share(server, share):
    lease = share.acquire_lease(lease_duration=15)
    with refused(412, "LeaseIdMissing"):
        share.delete_share()
    with refused(412, "LeaseIdMissing"):
        share.set_share_quota(5)
    share.set_share_quota(5, lease=lease)
    share.get_file_client("free").upload_file(b"of the lease")
    server.advance(10)
    lease.renew()
    server.advance(10)
    assert share.get_share_properties().lease.state == "leased"
    server.advance(6)
    assert share.get_share_properties().lease.state == "expired"
    lease = share.acquire_lease(lease_duration=-1)
    assert lease.break_lease(lease_break_period=20) in (19, 20)
    assert share.get_share_properties().lease.state == "breaking"
    share.delete_share(lease=lease)


# Listings, handles, permissions.


def test_a_listing_tells_what_is_asked_for(share):
    share.create_directory("dir").upload_file("file", b"content", file_attributes="Hidden")
    share.create_directory("dir/inner")
    plain = {entry.name: entry for entry in share.list_directories_and_files("dir")}
    assert plain["file"].size == 7 and plain["inner"].is_directory
    assert plain["file"].etag is None and plain["file"].creation_time is None
    everything = ["timestamps", "Etag", "Attributes", "PermissionKey"]
    full = {entry.name: entry for entry in share.list_directories_and_files("dir", include=everything)}
    seen = share.get_file_client("dir/file").get_file_properties()
    listed = full["file"]
    assert (listed.file_id, listed.size, listed.permission_key) == (seen.file_id, 7, seen.permission_key)
    assert listed.etag.strip('"') == seen.etag.strip('"')
    # The client leaves the times of a listing as texts, with seven digits.
    for text, time in [
        (listed.creation_time, seen.creation_time), (listed.last_write_time, seen.last_write_time),
        (listed.change_time, seen.change_time),
    ]:
        assert datetime.fromisoformat(f"{str(text)[:26]}+00:00") == time
    assert listed.last_access_time is not None and listed.last_modified == seen.last_modified
    assert str(listed.file_attributes).replace(" ", "") in ("Hidden|Archive", "Archive|Hidden")
    extended = {entry.name: entry for entry in share.list_directories_and_files("dir", include_extended_info=True)}
    assert extended["inner"].file_id == full["inner"].file_id


def test_a_listing_comes_in_pages(share):
    directory = share.create_directory("dir")
    expected = sorted(f"file{number:02}" for number in range(23))
    for name in expected:
        directory.get_file_client(name).create_file(0)
    for size in (1, 4, 23, 100):
        pages = directory.list_directories_and_files(results_per_page=size).by_page()
        pages = [[entry.name for entry in page] for page in pages]
        assert sum(pages, []) == expected and all(len(page) <= size for page in pages)
    first = directory.list_directories_and_files(results_per_page=5).by_page()
    next(first)
    rest = directory.list_directories_and_files(results_per_page=5).by_page(continuation_token=first.continuation_token)
    assert [entry.name for page in rest for entry in page] == expected[5:]
    assert [entry.name for entry in directory.list_directories_and_files("FILE1")] == expected[10:20]


def test_nobody_has_a_handle(share):
    directory = share.create_directory("dir")
    directory.upload_file("file", b"x")
    file = directory.get_file_client("file")
    assert list(directory.list_handles(recursive=True)) == [] and list(file.list_handles()) == []
    nothing = {"closed_handles_count": 0, "failed_handles_count": 0}
    assert directory.close_all_handles(recursive=True) == nothing and file.close_all_handles() == nothing
    assert file.close_handle("12345") == nothing


def test_permissions(share):
    key = share.create_permission_for_share(SDDL)
    assert share.create_permission_for_share(SDDL) == key
    assert share.get_permission_for_share(key) == SDDL
    binary = base64.b64decode(share.get_permission_for_share(key, file_permission_format="binary"))
    assert binary[:1] == b"\x01"
    by_key, by_text = share.get_file_client("by-key"), share.get_file_client("by-text")
    # As it is: otherwise a new file takes from its parent what is missing.
    by_key.create_file(0, permission_key=key, file_property_semantics="Restore")
    by_text.create_file(0, file_permission=SDDL, file_property_semantics="Restore")
    share.get_directory_client("dir").create_directory(file_permission_key=key, file_property_semantics="Restore")
    for seen in (
        by_key.get_file_properties(), by_text.get_file_properties(), share.get_directory_client("dir").get_directory_properties(),
    ):
        assert seen.permission_key == key
    inherited = share.get_file_client("inherited")
    inherited.create_file(0)
    own = inherited.get_file_properties().permission_key
    assert own != key
    inherited.set_http_headers(ContentSettings(), permission_key=key)
    assert inherited.get_file_properties().permission_key == key
    with refused(400, "FileInvalidPermission"):
        share.create_permission_for_share("everybody")
    with refused(400, "FileInvalidPermissionKey"):
        share.get_permission_for_share("1*2")


def test_owner_group_and_mode_in_a_share_for_nfs(shares):
    share = shares.create_share("nfs", protocols="NFS")
    directory, file = share.get_directory_client("dir"), share.get_file_client("file")

    def shown(seen):
        assert seen.file_attributes is None and seen.permission_key is None
        return seen.owner, seen.group, seen.file_mode, seen.nfs_file_type

    def both():
        return shown(directory.get_directory_properties()), shown(file.get_file_properties())

    said = {"owner": "345", "group": "123", "file_mode": "7777"}
    directory.create_directory(**said)
    file.create_file(1024, **said)
    assert both() == (("345", "123", "7777", "Directory"), ("345", "123", "7777", "Regular"))
    directory.set_http_headers(owner="0", group="0", file_mode="0755")
    file.set_http_headers(ContentSettings(content_language="de"), owner="0", group="0", file_mode="0644")
    assert both() == (("0", "0", "0755", "Directory"), ("0", "0", "0644", "Regular"))
    file.upload_range(b"x" * 512, 0, 512)
    assert file.download_file().properties.link_count == 1
    other = share.get_file_client("other")
    other.create_file(0)
    assert shown(other.get_file_properties()) == ("0", "0", "0664", "Regular")


# What was acknowledged is there.


@pytest.mark.parametrize("end", ["kill -9", "SIGTERM"])
def test_everything_is_there_afterwards(server, shares, end):
    share = shares.create_share("docs", metadata={"a": "1"})
    upload(share, tree())
    share.get_file_client("a.txt").acquire_lease()
    share.get_directory_client("dir").rename_directory("renamed")

    def describe():
        share = server.shares().get_share_client("docs")
        seen = share.get_share_properties()
        everything = ["timestamps", "Etag", "Attributes", "PermissionKey"]
        listed = [
            (path, entry.name, entry.file_id, entry.etag, entry.last_write_time, str(entry.file_attributes), entry.permission_key)
            for path in (None, "renamed", "hostile") for entry in share.list_directories_and_files(path, include=everything)
        ]
        return seen.etag, seen.metadata, share.get_share_stats(), listed, digests(download(share))

    before = describe()
    if end == "kill -9":
        server.kill9()
    else:
        assert server.stop() == 0
    server.restart()
    assert describe() == before
    with refused(412, "LeaseIdMissing"):
        server.shares().get_share_client("docs").get_file_client("a.txt").delete_file()
