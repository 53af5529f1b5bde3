"""az storage, with a key and with signatures that it makes itself."""

import json

import pytest

from harness import KEY
from programs import Tool, files

# Every command starts Python anew and reads a hundred modules, which takes its time on a busy machine.
pytestmark = pytest.mark.timeout(600)
# How az puts AuthorizationPermissionMismatch and AuthenticationFailed; other codes it repeats.
NO_PERMISSION = "You do not have the required permissions needed to perform this operation."
NOT_AUTHENTIC = "Authentication failure. This may be caused by either invalid account key"


class Az(Tool):
    def __call__(self, *words):
        said = super().__call__("storage", *words, "--only-show-errors", "--output", "json")
        return json.loads(said) if said.strip() else None

    def refused(self, *words):
        done = self.try_to("storage", *words, "--only-show-errors")
        assert done.returncode != 0, done.stdout
        return done.stderr.decode()


def az_with(server, home, **credential):
    quiet = {"AZURE_CORE_COLLECT_TELEMETRY": "no", "AZURE_CORE_NO_COLOR": "yes", "AZURE_CORE_DISABLE_PROGRESS_BAR": "yes"}
    az = Az("az", home, server, AZURE_CONFIG_DIR=str(home / "config"), **quiet, **credential)
    if (certificate := server.folder / "tls/cert.pem").exists():
        az.environment["REQUESTS_CA_BUNDLE"] = str(certificate)
    return az


@pytest.fixture
def az(server, tmp_path):
    return az_with(server, tmp_path / "home", AZURE_STORAGE_CONNECTION_STRING=server.conn_str)


def test_with_the_key(az, tmp_path):
    source, tree = tmp_path / "source.bin", tmp_path / "tree"
    source.write_bytes(bytes(range(256)) * 4096)
    assert az("container", "create", "--name", "box") == {"created": True}
    assert [box["name"] for box in az("container", "list")] == ["box"]
    az("blob", "upload", "--container-name", "box", "--name", "dir/a b", "--file", source, "--metadata", "colour=blue")
    shown = az("blob", "show", "--container-name", "box", "--name", "dir/a b")
    assert (shown["properties"]["contentLength"], shown["metadata"]) == (source.stat().st_size, {"colour": "blue"})
    assert [blob["name"] for blob in az("blob", "list", "--container-name", "box")] == ["dir/a b"]
    az("blob", "download", "--container-name", "box", "--name", "dir/a b", "--file", tmp_path / "down")
    assert (tmp_path / "down").read_bytes() == source.read_bytes()
    assert az("blob", "exists", "--container-name", "box", "--name", "none") == {"exists": False}

    (tree / "sub").mkdir(parents=True)
    (tree / "one").write_bytes(b"1")
    (tree / "sub/two").write_bytes(b"2")
    az("blob", "upload-batch", "--destination", "box/tree", "--source", tree)
    (tmp_path / "again").mkdir()
    az("blob", "download-batch", "--source", "box", "--destination", tmp_path / "again", "--pattern", "tree/*")
    assert files(tmp_path / "again/tree") == files(tree)

    lease = az("blob", "lease", "acquire", "--container-name", "box", "--blob-name", "dir/a b", "--lease-duration", 60)
    assert "LeaseIdMissing" in az.refused("blob", "delete", "--container-name", "box", "--name", "dir/a b")
    az("blob", "delete", "--container-name", "box", "--name", "dir/a b", "--lease-id", lease)
    assert "BlobNotFound" in az.refused("blob", "show", "--container-name", "box", "--name", "dir/a b")


def test_with_signatures(az, server, tmp_path):
    source = tmp_path / "source"
    source.write_bytes(b"content")
    az("container", "create", "--name", "box")
    az("blob", "upload", "--container-name", "box", "--name", "b", "--file", source)
    where = ("--blob-endpoint", server.blob_url)
    expiry = ("--expiry", "2099-01-01T00:00Z")
    makers = {
        "account": ("account", "generate-sas", "--services", "b", "--resource-types", "co", "--permissions", "rl"),
        "container": ("container", "generate-sas", "--name", "box", "--permissions", "rl"),
        "blob": ("blob", "generate-sas", "--container-name", "box", "--name", "b", "--permissions", "r"),
    }
    for name, maker in makers.items():
        signature = az(*maker, *expiry)
        stranger = az_with(server, tmp_path / name, AZURE_STORAGE_SAS_TOKEN=signature)
        stranger("blob", "download", "--container-name", "box", "--name", "b", "--file", tmp_path / f"down-{name}", *where)
        assert (tmp_path / f"down-{name}").read_bytes() == b"content"
        refusal = stranger.refused("blob", "delete", "--container-name", "box", "--name", "b", *where)
        assert NO_PERMISSION in refusal, refusal
    az("container", "policy", "create", "--container-name", "box", "--name", "readers", "--permissions", "r", *expiry)
    signature = az("container", "generate-sas", "--name", "box", "--policy-name", "readers")
    stranger = az_with(server, tmp_path / "policy", AZURE_STORAGE_SAS_TOKEN=signature)
    assert stranger("blob", "exists", "--container-name", "box", "--name", "b", *where) == {"exists": True}
    az("container", "policy", "delete", "--container-name", "box", "--name", "readers")
    refusal = stranger.refused("blob", "show", "--container-name", "box", "--name", "b", *where)
    assert NOT_AUTHENTIC in refusal, refusal


def test_a_wrong_key_is_refused(server, tmp_path):
    wrong = server.conn_str.replace(KEY, "c2VjcmV0")
    az = az_with(server, tmp_path / "home", AZURE_STORAGE_CONNECTION_STRING=wrong)
    assert NOT_AUTHENTIC in az.refused("container", "list")
