"""Clients of Data Lake on an account without a hierarchy: they ask for one, and go on with blobs when there is none."""

from urllib.parse import urlsplit

import pyarrow.fs
import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.filedatalake import DataLakeServiceClient

from harness import ACCOUNT, KEY


@pytest.fixture(params=["blob", "dfs"])
def files(server, request):
    """pyarrow with one port for everything: it sends requests of both kinds to either."""
    authority = urlsplit(server.urls[request.param]).netloc
    return pyarrow.fs.AzureFileSystem(
        ACCOUNT, account_key=KEY, blob_storage_authority=authority, dfs_storage_authority=authority,
        blob_storage_scheme="http", dfs_storage_scheme="http",
    )


def test_pyarrow_goes_on_with_blobs(files, container):
    tree = {"box/a": b"alpha", "box/dir/b": b"beta", "box/dir/deeper/c": b"x" * 5_000_000}
    for name, content in tree.items():
        with files.open_output_stream(name) as out:
            out.write(content)
    found = files.get_file_info(pyarrow.fs.FileSelector("box", recursive=True))
    assert sorted(info.path for info in found if info.type == pyarrow.fs.FileType.File) == sorted(tree)
    for name, content in tree.items():
        with files.open_input_stream(name) as stream:
            assert stream.read() == content
    files.create_dir("box/made", recursive=True)
    assert files.get_file_info("box/made").type == pyarrow.fs.FileType.Directory
    files.delete_dir("box/dir")
    assert files.get_file_info("box/dir/b").type == pyarrow.fs.FileType.NotFound
    files.copy_file("box/a", "box/copy")
    assert files.get_file_info("box/copy").size == 5


def test_the_client_of_data_lake_is_told(server, container):
    service = DataLakeServiceClient.from_connection_string(server.conn_str, **server.settings)
    system = service.get_file_system_client("box")
    assert system.exists() and not service.get_file_system_client("none").exists()
    container.upload_blob("dir/thing", b"hello")
    assert system.get_file_client("dir/thing").download_file().readall() == b"hello"
    with pytest.raises(HttpResponseError) as refused:
        system.get_directory_client("dir").get_access_control()
    assert (refused.value.status_code, refused.value.error_code) == (400, "HierarchicalNamespaceNotEnabled")
    with pytest.raises(HttpResponseError) as refused:
        system.create_file("new")
    assert (refused.value.status_code, refused.value.error_code) == (409, "EndpointUnsupportedAccountFeatures")
