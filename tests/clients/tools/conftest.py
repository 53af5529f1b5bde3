import random

import pytest

from harness import Server


@pytest.fixture(params=["http", "https"])
def server(request, tmp_path):
    options = ["--tls", "auto"] if request.param == "https" else []
    server = Server(tmp_path / "data", *options).start()
    yield server
    assert server.stop() == 0, server.log.read_text()


@pytest.fixture
def box(server):
    return server.service().create_container("box")


@pytest.fixture
def tree(tmp_path):
    """Files as people have them: empty, with awkward names, in folders, and one of several blocks."""
    root = tmp_path / "tree"
    contents = {
        "a.txt": b"alpha",
        "empty": b"",
        "dir/ä b+c%20.txt": b"name",
        "dir/deeper/1.bin": bytes(range(256)) * 40,
        "large.bin": random.Random(1).randbytes(20 * 1024 * 1024 + 1),
    }
    for name, content in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root
