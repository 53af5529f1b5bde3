"""Samba's smbclient against our server: every dialect, signed and encrypted.

LAZURITE_SMB_FULL=1 takes 10,000 small files and one of 1 GiB where ./test takes 300 and one of 128 MiB, so that a server without
optimisation is done in time and a small disk is not filled.
"""

import hashlib
import os
import shutil
import subprocess
import tarfile

import pytest

from harness import ACCOUNT, KEY, Server

IS_FULL = os.environ.get("LAZURITE_SMB_FULL") == "1"
SMALL_FILES = 10_000 if IS_FULL else 300
LARGE_BYTES = (1 << 30) if IS_FULL else (128 << 20)
MINUTES_MAX = 60 if IS_FULL else 10

pytestmark = [
    pytest.mark.skipif(shutil.which("smbclient") is None, reason="SKIPPED: smbclient is not installed"),
    pytest.mark.timeout(60 * MINUTES_MAX),
]

WAYS = [("SMB2_10", "sign"), *((dialect, way) for dialect in ("SMB3_00", "SMB3_02", "SMB3_11") for way in ("sign", "encrypt"))]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("smb") / "data"
    server = Server(folder, "--smb-port", "0", "--smb-encryption", "desired", "--create", "share:data,share:more").start()
    yield server
    assert server.stop() == 0, server.log.read_text()


class Smbclient:
    """The program with its own home, so that no configuration of the machine matters."""

    def __init__(self, server, folder, dialect="SMB3_11", way="encrypt"):
        self.server, self.folder, self.dialect, self.way = server, folder, dialect, way
        (folder / "smb.conf").write_text("[global]\nclient min protocol = SMB2_10\nclient max protocol = SMB3_11\n")

    def run(self, *words, share="data", key=KEY, timeout=60):
        target = [f"//127.0.0.1/{share}"] if share else ["-L", "//127.0.0.1"]
        return subprocess.run(
            ["smbclient", *target, "-p", str(self.server.smb_port), "-U", f"AZURE/{ACCOUNT}%{key}", "-m", self.dialect,
             f"--client-protection={self.way}", "-s", str(self.folder / "smb.conf"), *words],
            cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout,
        )

    def __call__(self, *commands, **more):
        done = self.run("-c", "; ".join(commands), **more)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(params=WAYS, ids=lambda way: "-".join(way))
def smbclient(request, server, tmp_path):
    client = Smbclient(server, tmp_path, *request.param)
    client("deltree *")
    return client


def test_files(smbclient, tmp_path):
    content = os.urandom(20 * 1024 * 1024 + 3)
    (tmp_path / "a.bin").write_bytes(content)
    smbclient("put a.bin")
    assert "a.bin" in smbclient("ls")
    smbclient("get a.bin b.bin")
    assert (tmp_path / "b.bin").read_bytes() == content
    smbclient("mkdir dir", "rename a.bin dir\\c.bin")
    assert "a.bin" not in smbclient("ls") and "c.bin" in smbclient("cd dir", "ls")
    assert "NT_STATUS_OBJECT_NAME_COLLISION" in smbclient.run("-c", "mkdir dir").stdout
    smbclient("cd dir", "allinfo c.bin", "del c.bin")
    smbclient("rmdir dir")
    assert "dir" not in smbclient("ls")


def test_tar(smbclient, tmp_path):
    tree = {"t/a.txt": b"alpha", "t/empty": b"", "t/deep/ä b.bin": bytes(range(256)) * 400}
    for name, content in tree.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    smbclient("prompt", "recurse", "mput t")
    done = smbclient.run("-Tc", "out.tar", "t")
    assert done.returncode == 0, done.stdout + done.stderr
    with tarfile.open(tmp_path / "out.tar") as archive:
        found = {entry.name.removeprefix("./"): archive.extractfile(entry).read() for entry in archive if entry.isfile()}
    assert found == tree


@pytest.fixture(params=[("SMB3_11", "sign"), ("SMB3_11", "encrypt")], ids=lambda way: "-".join(way))
def patient(request, server, tmp_path):
    """A client whose commands may take long."""
    client = Smbclient(server, tmp_path, *request.param)

    def run(*words):
        done = client.run(*words, timeout=60 * MINUTES_MAX)
        assert done.returncode == 0 and "NT_STATUS" not in done.stdout + done.stderr, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    client.run("-c", "deltree *", timeout=60 * MINUTES_MAX)
    return run


def test_many_small_files_out_and_in_by_tar(patient, tmp_path):
    tree = {f"many/{number % 50:02}/file{number}": f"{number} ".encode() * (number % 40) for number in range(SMALL_FILES)}
    with tarfile.open(tmp_path / "in.tar", "w") as archive:
        for name, content in tree.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(content)
            archive.add(tmp_path / name, arcname=name)
    contents = lambda path: {
        entry.name.removeprefix("./"): archive.extractfile(entry).read()
        for archive in [tarfile.open(path)] for entry in archive if entry.isfile()
    }
    patient("-c", "prompt; recurse; mput many")
    patient("-Tc", "out.tar", "many")
    assert contents(tmp_path / "out.tar") == tree
    patient("-c", "deltree many")
    assert "many" not in patient("-c", "ls")
    patient("-Tx", "in.tar")
    patient("-Tc", "again.tar", "many")
    assert contents(tmp_path / "again.tar") == tree


def test_a_large_file(patient, tmp_path):
    large, sums = tmp_path / "large.bin", [hashlib.sha256(), hashlib.sha256()]
    try:
        with open(large, "wb") as file:
            for _ in range(LARGE_BYTES >> 20):
                file.write(part := os.urandom(1 << 20))
                sums[0].update(part)
        patient("-c", "put large.bin")
        large.unlink()
        patient("-c", "get large.bin; del large.bin")
        with open(large, "rb") as file:
            while part := file.read(1 << 20):
                sums[1].update(part)
        assert large.stat().st_size == LARGE_BYTES
        assert sums[0].digest() == sums[1].digest()
    finally:
        large.unlink(missing_ok=True)


def test_the_list_of_shares(smbclient):
    listed = smbclient.run("-g", share=None)
    assert listed.returncode == 0, listed.stdout + listed.stderr
    shares = [line.split("|")[1] for line in listed.stdout.splitlines() if line.startswith(("Disk|", "IPC|"))]
    assert shares == ["data", "more", "IPC$"]


def test_who_is_refused(smbclient):
    assert "LOGON_FAILURE" in smbclient.run("-c", "ls", key="wrong").stdout
    assert "BAD_NETWORK_NAME" in smbclient.run("-c", "ls", share="other").stdout


def test_volume_and_attributes(smbclient, tmp_path):
    (tmp_path / "a").write_bytes(b"x")
    smbclient("put a", "setmode a +rh")
    shown = smbclient("ls")
    assert any(line.split()[:2] == ["a", "AHR"] for line in shown.splitlines()), shown
    smbclient("setmode a -rh", "del a")
    assert "|NTFS|" in smbclient("volume") or smbclient("volume")


def test_a_copy_inside_of_the_server(smbclient, server, tmp_path):
    content = os.urandom(5 * 1024 * 1024 + 3)
    (tmp_path / "a.bin").write_bytes(content)
    smbclient("put a.bin", "scopy a.bin b.bin", "del a.bin", "get b.bin c.bin")
    assert (tmp_path / "c.bin").read_bytes() == content
    share = server.shares().get_share_client("data")
    assert share.get_file_client("b.bin").download_file().readall() == content


def test_previous_versions(smbclient, server, tmp_path):
    share = server.shares().get_share_client("data")
    share.create_directory("dir").get_file_client("a.txt").upload_file(b"before")
    taken = share.create_snapshot()["snapshot"]
    token = f"@GMT-{taken[:10].replace('-', '.')}-{taken[11:19].replace(':', '.')}"
    share.get_file_client("dir/a.txt").upload_range(b"after!", 0, 6)
    share.get_file_client("dir/new.txt").upload_file(b"new")
    assert token in smbclient("allinfo dir\\a.txt")
    smbclient(f"get {token}\\dir\\a.txt old.txt", "get dir\\a.txt live.txt")
    assert (tmp_path / "old.txt").read_bytes() == b"before" and (tmp_path / "live.txt").read_bytes() == b"after!"
    listed = smbclient(f"ls {token}\\dir\\*")
    assert "a.txt" in listed and "new.txt" not in listed
    assert "NT_STATUS_MEDIA_WRITE_PROTECTED" in smbclient.run("-c", f"put old.txt {token}\\dir\\b.txt").stdout
    server.shares().get_share_client("data", snapshot=taken).delete_share()
    gone = smbclient.run("-c", f"get {token}\\dir\\a.txt old.txt").stdout
    assert "NT_STATUS_OBJECT_NAME_NOT_FOUND" in gone, gone
