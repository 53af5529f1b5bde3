"""opendal's service for Azure Files."""

import random

import opendal
import pytest

from harness import ACCOUNT, KEY
from programs import share_signature
from trees import HOSTILE, MIB, parents, tree

# It does not trust a certificate of ours.
pytestmark = pytest.mark.parametrize("server", ["http"], indirect=True)


@pytest.fixture
def docs(server):
    return server.shares().create_share("docs")


def operator(server, root="/", **credential):
    credential = credential or {"account_key": KEY}
    return opendal.Operator(
        "azfile", endpoint=server.file_url, account_name=ACCOUNT, share_name="docs", root=root, **credential
    )


@pytest.fixture(params=["key", "share signature"])
def azfile(request, server, docs):
    if request.param == "key":
        return operator(server)
    return operator(server, sas_token=share_signature())


def walk(azfile, path=""):
    """All files below a path with their contents."""
    found = {}
    for entry in azfile.list(path):
        if entry.path in (path, "/"):
            continue
        if entry.path.endswith("/"):
            found.update(walk(azfile, entry.path))
        else:
            found[entry.path] = bytes(azfile.read(entry.path))
    return found


def test_a_tree_goes_up_and_comes_down(azfile, docs):
    files = {path: content for path, content in tree(3).items() if content is not None}
    for path, content in files.items():
        azfile.write(path, content)
        assert azfile.stat(path).content_length == len(content)
    assert walk(azfile) == files
    for path in files:
        assert docs.get_file_client(path).download_file().readall() == files[path]
    assert azfile.stat("dir/").mode.is_dir() and azfile.stat("a.txt").mode.is_file()
    for path, content in list(files.items())[:5]:
        azfile.write(path, content[::-1] + b"more")
        assert bytes(azfile.read(path)) == content[::-1] + b"more"
    azfile.remove_all("hostile/")
    assert not azfile.exists("hostile/")
    assert all(not path.startswith("hostile/") for path in walk(azfile))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(azfile, docs, name):
    azfile.create_dir(f"dir {name}/")
    azfile.write(f"dir {name}/{name}", name.encode())
    assert bytes(azfile.read(f"dir {name}/{name}")) == name.encode()
    assert f"dir {name}/{name}" in [entry.path for entry in azfile.list(f"dir {name}/")]
    assert docs.get_file_client(f"dir {name}/{name}").get_file_properties().size == len(name.encode())


def test_renames(azfile, docs):
    content = random.Random(1).randbytes(5 * MIB)
    azfile.write("from/file", content)
    before = docs.get_file_client("from/file").get_file_properties().file_id
    azfile.rename("from/file", "to/deeper/file ä")
    assert bytes(azfile.read("to/deeper/file ä")) == content
    assert docs.get_file_client("to/deeper/file ä").get_file_properties().file_id == before
    assert not azfile.exists("from/file")
    azfile.write("other", b"other")
    azfile.rename("other", "to/deeper/file ä")
    assert bytes(azfile.read("to/deeper/file ä")) == b"other"
    with pytest.raises(opendal.exceptions.NotFound):
        azfile.rename("none", "x")


def test_parts_of_a_file(azfile):
    content = random.Random(2).randbytes(9 * MIB)
    azfile.write("file", content)
    with azfile.open("file", "rb") as file:
        for offset in (0, 5, 4 * MIB - 3, 9 * MIB - 10):
            file.seek(offset)
            assert bytes(file.read(10)) == content[offset : offset + 10]
    azfile.write("empty", b"")
    assert bytes(azfile.read("empty")) == b""
    azfile.delete("empty")
    assert not azfile.exists("empty")
    azfile.delete("empty")


def test_below_a_root(server, docs):
    inner = operator(server, root="/some/root ä/")
    inner.write("dir/file", b"x")
    assert docs.get_file_client("some/root ä/dir/file").download_file().readall() == b"x"
    assert walk(inner) == {"dir/file": b"x"}
    for above in parents("some/root ä/dir/file"):
        assert docs.get_directory_client(above).exists()
    with pytest.raises(opendal.exceptions.NotFound):
        inner.read("none")
