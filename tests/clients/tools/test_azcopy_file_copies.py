"""azcopy between shares, and between shares and containers: the server copies, and no bytes come by here."""

import pytest

from programs import account_signature, blobs, files, share_signature, container_signature
from test_azcopy_files import azcopy, docs  # noqa: F401
from test_rclone_files import stored

PLAIN = "--skip-version-check"


@pytest.fixture
def full(docs, tree):  # noqa: F811
    """The share with the tree in it."""
    for path in sorted(path for path in tree.rglob("*") if path.is_dir()):
        docs.create_directory(str(path.relative_to(tree)))
    for name, content in files(tree).items():
        docs.get_file_client(name).upload_file(content, metadata={"a": "1"})
    return docs


def test_from_one_share_to_another(azcopy, server, full, tree):  # noqa: F811
    other = server.shares().create_share("other")
    source = f"{server.file_url}/docs?{share_signature('rl')}"
    target = f"{server.file_url}/other?{share_signature(share='other')}"
    azcopy("copy", source, target, "--recursive", "--as-subdir=false", "--from-to", "FileFile", PLAIN)
    assert stored(other) == files(tree)
    metadata = other.get_file_client("a.txt").get_file_properties().metadata
    assert {name.lower(): value for name, value in metadata.items()} == {"a": "1"}  # azcopy sends names in capitals
    full.get_file_client("a.txt").upload_file(b"changed, and longer")
    full.get_file_client("new").upload_file(b"new")
    azcopy("sync", source, target, "--recursive", "--from-to", "FileFile", PLAIN)
    assert stored(other) == {**files(tree), "a.txt": b"changed, and longer", "new": b"new"}
    unsigned = f"{server.file_url}/docs/a.txt"
    refused = azcopy.try_to("copy", unsigned, f"{server.file_url}/other/no?{share_signature(share='other')}", "--from-to", "FileFile", PLAIN)
    assert refused.returncode != 0


def test_from_a_share_to_a_container_and_back(azcopy, server, full, box, tree):  # noqa: F811
    account = account_signature("rwdlac", service="bf")
    azcopy(
        "copy", f"{server.file_url}/docs?{account}", f"{server.blob_url}/box?{account}", "--recursive", "--as-subdir=false",
        "--from-to", "FileBlob", PLAIN,
    )
    assert blobs(box) == files(tree)
    back = server.shares().create_share("back")
    azcopy(
        "copy", f"{server.blob_url}/box?{container_signature('rl')}", f"{server.file_url}/back?{share_signature(share='back')}",
        "--recursive", "--as-subdir=false", "--from-to", "BlobFile", PLAIN,
    )
    assert stored(back) == files(tree)
