import ipaddress
import socket

import pytest

from harness import Server


@pytest.fixture
def server(tmp_path):
    """A server of this test's own; it must also end in good order."""
    server = Server(tmp_path / "data").start()
    yield server
    if server.process.poll() is None:
        assert server.stop() == 0, server.log.read_text()


@pytest.fixture
def service(server):
    return server.service()


@pytest.fixture
def container(service):
    return service.create_container("box")


@pytest.fixture
def blob(container):
    """A name to write to; nothing is there yet."""
    return container.get_blob_client("thing")


@pytest.fixture(autouse=True, scope="session")
def this_machine_only():
    """No test may open a connection to another machine."""
    connect = socket.socket.connect

    def guarded(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6):
            host = "127.0.0.1" if address[0] == "localhost" else address[0]
            assert ipaddress.ip_address(host).is_loopback, f"a test tried to reach {address}"
        return connect(self, address)

    socket.socket.connect = guarded
    yield
    socket.socket.connect = connect
