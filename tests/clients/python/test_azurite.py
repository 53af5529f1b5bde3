"""In Azurite's place: a project that starts `azurite` and connects with its well-known account."""

import os
import re
import subprocess

from azure.storage.blob import BlobServiceClient

from harness import ACCOUNT, KEY, STOP_SECONDS, binary

LISTENING = re.compile(r"Azurite Blob service is successfully listening at (http://\S+)")


def start(program, folder):
    """As Testcontainers does it, on free ports: wait for the line, then connect."""
    ports = [word for name in ("blob", "queue", "table") for word in (f"--{name}Port", "0")]
    process = subprocess.Popen(
        [program, "--silent", "--skipApiVersionCheck", "--location", folder, *ports],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env={name: value for name, value in os.environ.items() if not name.startswith(("LAZURITE_", "AZURITE_"))},
    )
    for line in process.stdout:
        if match := LISTENING.search(line):
            return process, match[1]
    raise AssertionError(f"it ended with {process.wait()} and never listened")


def test_a_project_changes_nothing_but_the_program(tmp_path):
    azurite, folder = tmp_path / "azurite", tmp_path / "project"
    azurite.symlink_to(os.path.realpath(binary()))
    folder.mkdir()
    (folder / "package.json").write_text("{}")
    for run in range(2):
        process, url = start(azurite, folder)
        try:
            service = BlobServiceClient.from_connection_string(
                # What UseDevelopmentStorage=true stands for, but for the port.
                f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={url}/{ACCOUNT};",
                retry_total=0,
            )
            box = service.get_container_client("box")
            if run == 0:
                box.create_container()
                box.upload_blob("b", b"content")
            assert box.download_blob("b").readall() == b"content"
            assert [found.name for found in service.list_containers()] == ["box"]
            process.terminate()
            said, _ = process.communicate(timeout=STOP_SECONDS)
            assert process.returncode == 0 and "Azurite Blob service successfully closed" in said
        finally:
            process.kill()
            process.wait()
