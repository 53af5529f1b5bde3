"""rclone with its backend for Azure Files."""

import pytest

from harness import ACCOUNT, KEY
from programs import Tool, account_signature, files
from trees import HOSTILE


@pytest.fixture
def docs(server):
    return server.shares().create_share("docs")


@pytest.fixture(params=["key", "connection string", "account signature"])
def rclone(request, server, docs, tmp_path):
    credential = {
        "key": {
            "RCLONE_AZUREFILES_ACCOUNT": ACCOUNT, "RCLONE_AZUREFILES_KEY": KEY, "RCLONE_AZUREFILES_ENDPOINT": server.file_url,
        },
        "connection string": {"RCLONE_AZUREFILES_CONNECTION_STRING": server.conn_str},
        "account signature": {"RCLONE_AZUREFILES_SAS_URL": f"{server.file_url}?{account_signature('rwdlc', service='f')}"},
    }[request.param]
    # An answer of 403 or 412 shall be seen, not tried again.
    once = {"RCLONE_RETRIES": "1", "RCLONE_LOW_LEVEL_RETRIES": "1", "RCLONE_AZUREFILES_SHARE_NAME": "docs"}
    return Tool("rclone", tmp_path / "home", server, RCLONE_CONFIG=str(tmp_path / "none"), **once, **credential)


@pytest.fixture
def rich(tree):
    """The tree with names that programs have trouble with, and a directory without files."""
    for number, name in enumerate(HOSTILE):
        (tree / f"hostile {name}").mkdir()
        (tree / f"hostile {name}" / name).write_bytes(name.encode() * number)
    (tree / "nothing").mkdir()
    return tree


def stored(share, path=""):
    found = {}
    for entry in share.list_directories_and_files(path or None):
        below = f"{path}/{entry.name}" if path else entry.name
        if entry.is_directory:
            found.update(stored(share, below))
        else:
            found[below] = share.get_file_client(below).download_file().readall()
    return found


def test_a_tree_goes_up_and_comes_down(rclone, docs, rich, tmp_path):
    rclone("copy", "--create-empty-src-dirs", rich, ":azurefiles:")
    assert stored(docs) == files(rich)
    assert docs.get_directory_client("nothing").exists()
    rclone("check", rich, ":azurefiles:")
    rclone("check", "--download", rich, ":azurefiles:")
    assert sorted(rclone("lsf", "-R", "--files-only", ":azurefiles:").decode().split("\n")[:-1]) == sorted(files(rich))
    large = (rich / "large.bin").read_bytes()
    assert rclone("cat", "--offset", 5_000_000, "--count", 1000, ":azurefiles:large.bin") == large[5_000_000:5_001_000]
    rclone("copy", ":azurefiles:", tmp_path / "down")
    assert files(tmp_path / "down") == files(rich)

    (rich / "a.txt").write_bytes(b"changed, and longer")
    (rich / "empty").unlink()
    (rich / "new").write_bytes(b"new")
    rclone("sync", rich, ":azurefiles:")
    assert stored(docs) == files(rich)
    docs.get_file_client("a.txt").upload_file(b"changed behind its back")
    assert rclone.try_to("check", rich, ":azurefiles:").returncode != 0
    rclone("sync", ":azurefiles:", tmp_path / "down")
    assert files(tmp_path / "down") == {**files(rich), "a.txt": b"changed behind its back"}
    rclone("purge", ":azurefiles:dir")
    assert not docs.get_directory_client("dir").exists()


def test_renames_happen_on_the_server(rclone, docs, rich):
    rclone("copy", rich, ":azurefiles:from")
    before = docs.get_file_client("from/large.bin").get_file_properties().file_id
    said = rclone.try_to("moveto", "-vv", ":azurefiles:from", ":azurefiles:other/to")
    assert said.returncode == 0, said.stderr.decode()
    assert stored(docs) == {f"other/to/{name}": content for name, content in files(rich).items()}
    assert docs.get_file_client("other/to/large.bin").get_file_properties().file_id == before
    rclone("moveto", ":azurefiles:other/to/large.bin", ":azurefiles:large ä b+c%20.bin")
    moved = docs.get_file_client("large ä b+c%20.bin").get_file_properties()
    assert moved.file_id == before
    rclone("mkdir", ":azurefiles:empty/inner")
    rclone("rmdirs", ":azurefiles:empty")
    assert not docs.get_directory_client("empty").exists()


def test_times_and_sums_are_kept(rclone, docs, tree, tmp_path):
    rclone("copy", tree, ":azurefiles:")
    listed = rclone("lsf", "-R", "--files-only", "--format", "tp", ":azurefiles:").decode()
    local = rclone("lsf", "-R", "--files-only", "--format", "tp", str(tree)).decode()
    assert sorted(listed.splitlines()) == sorted(local.splitlines())
    sums = rclone("md5sum", ":azurefiles:").decode()
    assert sorted(sums.splitlines()) == sorted(rclone("md5sum", str(tree)).decode().splitlines())
