import pytest

from harness import ACCOUNT, KEY
from programs import Tool, account_signature, blobs, container_signature, files


@pytest.fixture(params=["key", "account signature", "container signature"])
def rclone(request, server, box, tmp_path):
    credential = {
        "key": {
            "RCLONE_AZUREBLOB_ACCOUNT": ACCOUNT, "RCLONE_AZUREBLOB_KEY": KEY, "RCLONE_AZUREBLOB_ENDPOINT": server.blob_url,
        },
        "account signature": {"RCLONE_AZUREBLOB_SAS_URL": f"{server.blob_url}?{account_signature()}"},
        "container signature": {"RCLONE_AZUREBLOB_SAS_URL": f"{server.blob_url}/box?{container_signature()}"},
    }[request.param]
    # An answer of 403 or 412 shall be seen, not tried again.
    once = {"RCLONE_RETRIES": "1", "RCLONE_LOW_LEVEL_RETRIES": "1"}
    return Tool("rclone", tmp_path / "home", server, RCLONE_CONFIG=str(tmp_path / "none"), **once, **credential)


def test_rclone(rclone, box, tree, tmp_path):
    rclone("copy", tree, ":azureblob:box")
    assert blobs(box) == files(tree)
    rclone("check", tree, ":azureblob:box")
    assert rclone("lsf", "-R", "--files-only", ":azureblob:box").decode().split("\n")[:-1] == sorted(files(tree))
    large = (tree / "large.bin").read_bytes()
    assert rclone("cat", "--offset", 5_000_000, "--count", 1000, ":azureblob:box/large.bin") == large[5_000_000:5_001_000]
    rclone("copy", ":azureblob:box", tmp_path / "down")
    assert files(tmp_path / "down") == files(tree)

    (tree / "a.txt").write_bytes(b"changed, and longer")
    (tree / "empty").unlink()
    (tree / "new").write_bytes(b"new")
    rclone("sync", tree, ":azureblob:box")
    assert blobs(box) == files(tree)
    box.upload_blob("a.txt", b"changed behind its back", overwrite=True)
    assert rclone.try_to("check", tree, ":azureblob:box").returncode != 0
    rclone("sync", ":azureblob:box", tmp_path / "down")
    assert files(tmp_path / "down") == {**files(tree), "a.txt": b"changed behind its back"}


def test_within_the_server(rclone, box, tree):
    rclone("copy", tree, ":azureblob:box/from")
    # With its own word for it the program would have to send the bytes itself.
    said = rclone.try_to("copy", "-vv", ":azureblob:box/from", ":azureblob:box/to")
    assert said.returncode == 0, said.stderr.decode()
    assert said.stderr.count(b"Copied (server-side copy)") == len(files(tree)), said.stderr.decode()
    rclone("check", "--download", ":azureblob:box/from", ":azureblob:box/to")
    rclone("check", tree, ":azureblob:box/to")
    rclone("purge", ":azureblob:box/from")
    assert blobs(box) == {f"to/{name}": content for name, content in files(tree).items()}
    large = (tree / "large.bin").read_bytes()
    for offset, count in ((0, 1), (4 * 1024 * 1024 - 1, 2), (20 * 1024 * 1024, 1)):
        read = rclone("cat", "--offset", offset, "--count", count, ":azureblob:box/to/large.bin")
        assert read == large[offset : offset + count]
