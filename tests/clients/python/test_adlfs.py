"""adlfs: blobs as files for Python's data tools."""

import hashlib
import random

import pytest
from adlfs import AzureBlobFileSystem

LARGE = random.Random(2).randbytes(9 * 1024 * 1024 + 1)


@pytest.fixture
def files(server):
    return AzureBlobFileSystem(connection_string=server.conn_str, skip_instance_cache=True, use_listings_cache=False)


def digest(content):
    return hashlib.sha256(content).hexdigest()


def test_a_round_trip(files, container, tmp_path):
    tree = {"a.txt": b"alpha", "dir/ä b": b"name", "dir/deeper/large": LARGE, "empty": b""}
    for name, content in tree.items():
        (tmp_path / "up" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "up" / name).write_bytes(content)
    files.put(f"{tmp_path}/up/", "box/tree/", recursive=True)
    assert sorted(files.find("box/tree")) == sorted(f"box/tree/{name}" for name in tree)
    assert {name: digest(files.cat(f"box/tree/{name}")) for name in tree} == {name: digest(content) for name, content in tree.items()}
    files.get("box/tree/", f"{tmp_path}/down/", recursive=True)
    assert {name: (tmp_path / "down" / name).read_bytes() for name in tree} == tree

    with files.open("box/tree/dir/deeper/large", block_size=1024 * 1024) as file:
        file.seek(5_000_000)
        assert file.read(1000) == LARGE[5_000_000:5_001_000]
    with files.open("box/written", "wb", block_size=4 * 1024 * 1024) as file:
        file.write(LARGE)
    assert digest(files.cat("box/written")) == digest(LARGE)


def test_copies_moves_and_removals(files, container):
    files.pipe("box/from", LARGE)
    files.cp_file("box/from", "box/copy")
    files.mv("box/from", "box/moved")
    assert sorted(files.ls("box")) == ["box/copy", "box/moved"]
    assert digest(files.cat("box/copy")) == digest(files.cat("box/moved")) == digest(LARGE)
    assert files.info("box/copy")["size"] == len(LARGE)
    files.rm("box/copy")
    assert not files.exists("box/copy")
    with pytest.raises(FileNotFoundError):
        files.cat("box/copy")
