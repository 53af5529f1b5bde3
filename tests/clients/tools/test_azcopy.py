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
