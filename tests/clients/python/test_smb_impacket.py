"""impacket, a third implementation of SMB: logon, the share list over both ways of a pipe, files."""

import io
import os

import pytest
from impacket.dcerpc.v5 import srvs, transport
from impacket.smbconnection import SessionError, SMBConnection

from harness import ACCOUNT, KEY, Server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("smb") / "data"
    server = Server(folder, "--smb-port", "0", "--smb-encryption", "desired", "--create", "share:data").start()
    yield server
    assert server.stop() == 0, server.log.read_text()


@pytest.fixture
def connection(server):
    connection = SMBConnection("127.0.0.1", "127.0.0.1", sess_port=server.smb_port, timeout=30)
    connection.login(ACCOUNT, KEY)
    yield connection
    connection.close()


def test_shares(connection):
    names = [share["shi1_netname"][:-1] for share in connection.listShares()]
    assert names == ["data", "IPC$"]


def test_a_share_by_its_name(connection):
    rpc = transport.SMBTransport(connection.getRemoteName(), filename=r"\srvsvc", smb_connection=connection).get_dce_rpc()
    rpc.connect()
    rpc.bind(srvs.MSRPC_UUID_SRVS)
    answer = srvs.hNetrShareGetInfo(rpc, "data\x00", 1)
    assert answer["InfoStruct"]["ShareInfo1"]["shi1_netname"] == "data\x00"
    rpc.disconnect()


def test_files(connection):
    content = os.urandom(3_000_000)
    connection.createDirectory("data", "dir")
    connection.putFile("data", "dir\\a", io.BytesIO(content).read)
    found = io.BytesIO()
    connection.getFile("data", "dir\\a", found.write)
    assert found.getvalue() == content
    names = [entry.get_longname() for entry in connection.listPath("data", "dir\\*")]
    assert names == [".", "..", "a"]
    connection.rename("data", "dir\\a", "dir\\b")
    connection.deleteFile("data", "dir\\b")
    connection.deleteDirectory("data", "dir")


def test_who_is_refused(server):
    for user, key in ((ACCOUNT, "wrong"), ("nobody", KEY), ("", "")):
        connection = SMBConnection("127.0.0.1", "127.0.0.1", sess_port=server.smb_port, timeout=30)
        with pytest.raises(SessionError) as caught:
            connection.login(user, key)
        assert caught.value.getErrorCode() in (0xC000006D, 0xC0000022)
        connection.close()
