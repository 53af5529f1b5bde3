"""azcopy with shares for NFS: symbolic links are kept, hard links become files of their own, owners and modes go along."""

import os
from urllib.parse import quote, unquote

import pytest

from programs import files, share_signature
from test_azcopy_files import azcopy  # noqa: F401

PLAIN = "--skip-version-check"
LINKS = {"dir/beside": "1.txt", "up": "dir/1.txt", "nowhere": "/no/such file", "odd": "100%25 ä"}


@pytest.fixture
def nfs(server):
    return server.shares().create_share("nfs", protocols="NFS")


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "tree"
    (root / "dir").mkdir(parents=True)
    (root / "dir/1.txt").write_bytes(b"one")
    (root / "dir/1.txt").chmod(0o640)
    os.link(root / "dir/1.txt", root / "hard.txt")
    for name, text in LINKS.items():
        (root / name).symlink_to(text)
    return root


def links(root):
    return {str(path.relative_to(root)): os.readlink(path) for path in root.rglob("*") if path.is_symlink()}


def regular(root):
    return {name: content for name, content in files(root).items() if not (root / name).is_symlink()}


def test_a_tree_with_links_goes_up_across_and_down(azcopy, server, nfs, tree, tmp_path):  # noqa: F811
    other = server.shares().create_share("other", protocols="NFS")
    here = f"{server.file_url}/nfs?{share_signature(share='nfs')}"
    there = f"{server.file_url}/other?{share_signature(share='other')}"
    options = ("--recursive", "--preserve-symlinks", "--preserve-info", "--preserve-permissions", PLAIN)
    azcopy("copy", f"{tree}/*", here, "--from-to", "LocalFileNFS", *options)
    # Over what is there already.
    azcopy("copy", f"{tree}/*", here, "--from-to", "LocalFileNFS", *options)
    azcopy("copy", here, there, "--as-subdir=false", "--from-to", "FileNFSFileNFS", *options)
    for share in (nfs, other):
        seen = share.get_file_client("dir/beside").get_file_properties()
        assert (seen.nfs_file_type, seen.link_count) == ("SymLink", 1)
        seen = share.get_file_client("dir/1.txt").get_file_properties()
        assert (seen.nfs_file_type, seen.file_mode, seen.owner) == ("Regular", "0640", str(os.getuid()))
    assert {name: unquote(nfs.get_file_client(name).get_symlink()["link_text"]) for name in LINKS} == LINKS
    for name, source in {"down": here, "down-there": there}.items():
        down = tmp_path / name
        down.mkdir()
        azcopy("copy", source.replace("?", "/*?"), down, "--from-to", "FileNFSLocal", *options)
        assert (set(links(down)), regular(down)) == (set(LINKS), regular(tree))
    # The service tells the text encoded, and azcopy does not decode it.
    assert links(tmp_path / "down") == {name: quote(text, safe="") for name, text in LINKS.items()}


def test_hard_links_come_down_as_files(azcopy, server, nfs, tmp_path):  # noqa: F811
    nfs.get_file_client("one").upload_file(b"content")
    nfs.get_file_client("two").create_hardlink(target="one")
    down = tmp_path / "down"
    down.mkdir()
    azcopy("copy", f"{server.file_url}/nfs/*?{share_signature(share='nfs')}", down, "--recursive", "--from-to", "FileNFSLocal", PLAIN)
    assert files(down) == {"one": b"content", "two": b"content"}
