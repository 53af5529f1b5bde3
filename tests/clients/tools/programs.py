"""Programs that people use with the service, and what they are given."""

import os
import shutil
import subprocess
from datetime import datetime, timedelta, timezone

import pytest
from azure.storage.blob import (
    AccountSasPermissions, ContainerSasPermissions, ResourceTypes, Services, generate_account_sas, generate_container_sas,
)
from azure.storage.fileshare import ShareSasPermissions, generate_share_sas

from harness import ACCOUNT, KEY

SECONDS = 100
# For what is not on this machine there is a proxy that does not answer.
NOWHERE = {name: "http://127.0.0.1:1" for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")}


def files(root):
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def blobs(box):
    return {blob.name: box.download_blob(blob.name).readall() for blob in box.list_blobs()}


def account_signature(permission="rwdlac", service="b"):
    return generate_account_sas(
        ACCOUNT, KEY, ResourceTypes(True, True, True), AccountSasPermissions.from_string(permission), soon(),
        services=Services.from_string(service),
    )


def container_signature(permission="rwdlac", container="box"):
    return generate_container_sas(
        ACCOUNT, container, KEY, permission=ContainerSasPermissions.from_string(permission), expiry=soon()
    )


def share_signature(permission="rcwdl", share="docs"):
    return generate_share_sas(
        ACCOUNT, share, KEY, permission=ShareSasPermissions.from_string(permission), expiry=soon()
    )


def soon():
    return datetime.now(timezone.utc) + timedelta(hours=1)


class Tool:
    """A program with an environment of its own."""

    def __init__(self, name, home, server, **environment):
        program = shutil.which(name)
        if not program:
            pytest.skip(f"{name} is not here: ./test could not install it from the registries")
        self.program = program
        home.mkdir()
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(home), "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", **NOWHERE,
            **environment,
        }
        if (certificate := server.folder / "tls/cert.pem").exists():
            self.environment["SSL_CERT_FILE"] = str(certificate)
        version = self.try_to("--version")
        if version.returncode == 127:  # a library is missing
            pytest.skip(f"{name} does not run here: {version.stderr.decode().strip()}")

    def try_to(self, *words):
        return subprocess.run(
            [self.program, *map(str, words)], env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=SECONDS,
        )

    def __call__(self, *words):
        done = self.try_to(*words)
        said = done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")
        assert done.returncode == 0, f"{words}\n{said}"
        return done.stdout
