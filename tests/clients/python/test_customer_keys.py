"""Keys that the client brings: nothing is read without them."""

import base64
import hashlib

import pytest
from azure.storage.blob import CustomerProvidedEncryptionKey

from harness import Server, readable, refused


def key(byte):
    secret = bytes([byte]) * 32
    return CustomerProvidedEncryptionKey(
        base64.b64encode(secret).decode(), base64.b64encode(hashlib.sha256(secret).digest()).decode()
    )


@pytest.fixture
def server(tmp_path):
    """The client sends keys over https only."""
    server = Server(tmp_path / "data", "--tls", "auto").start()
    yield server
    assert server.stop() == 0, server.log.read_text()


@pytest.fixture
def service(server):
    """With small blocks, so that they are used at all."""
    return server.service(max_block_size=1024 * 1024, max_single_put_size=100_000)


@pytest.mark.parametrize("size", [10, 70_000, 6 * 1024 * 1024])
def test_what_is_written_with_a_key_is_read_with_it(blob, size):
    content = bytes(range(256)) * (size // 256 + 1)
    blob.upload_blob(content, cpk=key(1), metadata={"a": "1"})
    assert blob.download_blob(cpk=key(1)).readall() == content
    assert blob.download_blob(offset=100, length=7, cpk=key(1)).readall() == content[100:107]
    assert blob.get_blob_properties(cpk=key(1)).metadata == {"a": "1"}
    with refused(409, "BlobUsesCustomerSpecifiedEncryption"):
        blob.download_blob()
    with refused(409, "BlobCustomerSpecifiedEncryptionMismatch"):
        blob.download_blob(cpk=key(2))


def test_from_one_key_to_another(container):
    content = bytes(range(256)) * 2048
    source = container.get_blob_client("source")
    source.upload_blob(content, cpk=key(1), metadata={"a": "1"})
    url = readable(source)
    made = container.get_blob_client("made")
    made.upload_blob_from_url(url, cpk=key(2), source_cpk=key(1))
    made.stage_block_from_url("AAAA", url, cpk=key(2), source_cpk=key(1))
    with refused(409, "CannotVerifyCopySource"):
        made.stage_block_from_url("AAAB", url, cpk=key(2))
    assert made.download_blob(cpk=key(2)).readall() == content
    assert made.get_blob_properties(cpk=key(2)).metadata == {"a": "1"}


def test_no_key_is_found_in_the_folder(server, blob):
    secret = b"\x07\x31" * 16
    given = CustomerProvidedEncryptionKey(
        base64.b64encode(secret).decode(), base64.b64encode(hashlib.sha256(secret).digest()).decode()
    )
    blob.upload_blob(b"the treasure is under the oak " * 10_000, cpk=given, metadata={"map": "north by northwest"})
    server.kill9()
    server.restart()
    again = server.service().get_blob_client("box", "thing")
    assert again.download_blob(cpk=given).readall().startswith(b"the treasure")
    # A running server writes and removes files of its own.
    server.kill9()
    found = {path: path.read_bytes() for path in server.folder.rglob("*") if path.is_file()}
    server.restart()
    assert found
    for path, stored in found.items():
        for text in (secret, given.key_value.encode(), b"treasure", b"northwest"):
            assert text not in stored, path
