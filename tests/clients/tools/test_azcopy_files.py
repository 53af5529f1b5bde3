"""azcopy between this machine and a share."""

import pytest

from programs import Tool, account_signature, files, share_signature
from test_rclone_files import stored


@pytest.fixture
def docs(server):
    return server.shares().create_share("docs")


@pytest.fixture
def azcopy(server, tmp_path):
    home = tmp_path / "home"
    return Tool(
        "azcopy", home, server, AZCOPY_LOG_LOCATION=str(home), AZCOPY_JOB_PLAN_LOCATION=str(home),
        AZCOPY_CONCURRENCY_VALUE="8",
    )


SIGNERS = {"account": lambda: account_signature("rwdlc", service="f"), "share": share_signature}


@pytest.mark.parametrize("kind", SIGNERS)
def test_a_tree_goes_up_and_comes_down(azcopy, server, docs, tree, tmp_path, kind):
    signature = SIGNERS[kind]()
    here = f"{server.file_url}/docs?{signature}"
    azcopy("copy", f"{tree}/*", here, "--recursive", "--from-to", "LocalFile", "--put-md5", "--skip-version-check")
    assert stored(docs) == files(tree)
    down = tmp_path / "down"
    down.mkdir()
    azcopy(
        "copy", f"{server.file_url}/docs/*?{signature}", down, "--recursive", "--from-to", "FileLocal", "--check-md5",
        "FailIfDifferentOrMissing", "--skip-version-check",
    )
    assert files(down) == files(tree)
    (tree / "a.txt").write_bytes(b"changed, and longer")
    (tree / "new").write_bytes(b"new")
    azcopy("copy", f"{tree}/*", here, "--recursive", "--from-to", "LocalFile", "--put-md5", "--skip-version-check")
    assert stored(docs) == files(tree)
    azcopy("remove", f"{server.file_url}/docs/dir?{signature}", "--recursive", "--from-to", "FileTrash", "--skip-version-check")
    assert not docs.get_directory_client("dir").exists()


def test_a_snapshot_is_copied_from(azcopy, server, docs, tree, tmp_path):
    signature = account_signature("rwdlc", service="f")
    here = f"{server.file_url}/docs?{signature}"
    azcopy("copy", f"{tree}/*", here, "--recursive", "--from-to", "LocalFile", "--skip-version-check")
    snapshot = docs.create_snapshot()["snapshot"]
    before = stored(docs)
    docs.get_file_client("a.txt").upload_file(b"changed, and longer")
    docs.get_directory_client("dir").rename_directory("moved")
    down = tmp_path / "down"
    down.mkdir()
    source = f"sharesnapshot={snapshot}&{signature}"
    azcopy("copy", f"{server.file_url}/docs/*?{source}", down, "--recursive", "--from-to", "FileLocal", "--skip-version-check")
    assert files(down) == before
    other = server.shares().create_share("other")
    azcopy(
        "copy", f"{server.file_url}/docs/*?{source}", f"{server.file_url}/other?{signature}", "--recursive", "--from-to",
        "FileFile", "--skip-version-check",
    )
    assert stored(other) == before
