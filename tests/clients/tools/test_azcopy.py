import pytest

from programs import Tool, account_signature, blobs, container_signature, files


@pytest.fixture
def azcopy(server, tmp_path):
    home = tmp_path / "home"
    return Tool(
        "azcopy", home, server, AZCOPY_LOG_LOCATION=str(home), AZCOPY_JOB_PLAN_LOCATION=str(home),
        AZCOPY_CONCURRENCY_VALUE="8",
    )


@pytest.mark.parametrize("sign", [account_signature, container_signature], ids=["account signature", "container signature"])
def test_azcopy(azcopy, server, box, tree, tmp_path, sign):
    here = f"{server.blob_url}/box?{sign()}"
    azcopy("copy", f"{tree}/*", here, "--recursive", "--from-to", "LocalBlob", "--put-md5", "--skip-version-check")
    assert blobs(box) == files(tree)
    listed = azcopy("list", here, "--location", "Blob", "--machine-readable", "--skip-version-check").decode()
    sizes = dict(line.split("; Content Length: ") for line in listed.splitlines() if "; Content Length: " in line)
    assert sizes == {name: str(len(content)) for name, content in files(tree).items()}
    down = tmp_path / "down"
    down.mkdir()
    azcopy(
        "copy", f"{server.blob_url}/box/*?{sign()}", down, "--recursive", "--from-to", "BlobLocal", "--check-md5",
        "FailIfDifferentOrMissing", "--skip-version-check",
    )
    assert files(down) == files(tree)

    reader = f"{server.blob_url}/box?{sign('rl')}"
    refused = azcopy.try_to(
        "copy", tree / "a.txt", reader, "--from-to", "LocalBlob", "--skip-version-check", "--overwrite", "true"
    )
    assert refused.returncode != 0 and b"AuthorizationPermissionMismatch" in refused.stdout


def test_from_one_container_to_another(azcopy, server, box, tree):
    for name, content in files(tree).items():
        box.upload_blob(name, content, metadata={"a": "1"})
    box.upload_blob("pages", bytes(512) + b"p" * 512, blob_type="PageBlob")
    box.upload_blob("log", b"line\n", blob_type="AppendBlob")
    other = server.service().create_container("other")
    source = f"{server.blob_url}/box?{container_signature('rl')}"
    target = f"{server.blob_url}/other?{container_signature(container='other')}"
    azcopy("copy", source, target, "--recursive", "--as-subdir=false", "--from-to", "BlobBlob", "--skip-version-check")
    assert blobs(other) == blobs(box)
    kinds = {blob.name: (blob.blob_type, blob.metadata) for blob in box.list_blobs(include=["metadata"])}
    assert {blob.name: (blob.blob_type, blob.metadata) for blob in other.list_blobs(include=["metadata"])} == kinds

    box.upload_blob("a.txt", b"changed, and longer", overwrite=True)
    box.upload_blob("new", b"new")
    box.delete_blob("empty")
    azcopy(
        "sync", source, target, "--recursive", "--from-to", "BlobBlob", "--delete-destination", "true", "--skip-version-check"
    )
    assert blobs(other) == blobs(box)

    unsigned = f"{server.blob_url}/box"
    refused = azcopy.try_to("copy", f"{unsigned}/a.txt", target, "--from-to", "BlobBlob", "--skip-version-check")
    assert refused.returncode != 0


def test_sync(azcopy, server, box, tree, tmp_path):
    here = f"{server.blob_url}/box?{container_signature()}"
    up = ("sync", tree, here, "--recursive", "--from-to", "LocalBlob", "--delete-destination", "true", "--skip-version-check")
    azcopy(*up)
    assert blobs(box) == files(tree)
    (tree / "a.txt").write_bytes(b"changed, and longer")
    (tree / "dir/deeper/1.bin").unlink()
    (tree / "new").write_bytes(b"new")
    azcopy(*up)
    assert blobs(box) == files(tree)
    down = tmp_path / "down"
    down.mkdir()
    azcopy("sync", here, down, "--recursive", "--from-to", "BlobLocal", "--skip-version-check")
    assert files(down) == files(tree)
