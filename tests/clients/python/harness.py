"""Starts a server of its own for a test, and says what a refusal looks like."""

import json
import os
import queue
import re
import signal
import subprocess
import threading
import time
import urllib.request
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobSasPermissions, BlobServiceClient, generate_blob_sas
from azure.storage.fileshare import ShareServiceClient, generate_account_sas
from azure.storage.queue import QueueClient, QueueServiceClient

ROOT = Path(__file__).resolve().parents[3]
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
START_SECONDS = 30
STOP_SECONDS = 20

LISTENING = re.compile(r"(\w+)(?: service)? is listening at ((?:https?|smb)://\S+)")
# A proxy of the environment is not for us: the server is on this machine.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Server:
    """One server process on free ports with its own data folder. Only this process is ever signalled."""

    def __init__(self, folder, *options):
        self.folder = Path(folder)
        self.options = options
        self.urls = {}
        self.process = None
        self.log = self.folder.with_name(self.folder.name + ".log")

    def start(self):
        ports = [word for name in ("blob", "queue", "table", "file", "dfs", "admin") for word in (f"--{name}-port", "0")]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [binary(), "--location", self.folder, *ports, "--test-clock", "--copy-sources", "loopback", *self.options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                # Every option of the server may also come from the environment; ours come from here only.
                env={name: value for name, value in os.environ.items() if not name.startswith("LAZURITE_")},
            )
        self.urls = self._wait_until_ready()
        return self

    def _wait_until_ready(self):
        lines = queue.Queue()
        # The thread goes on reading until the process ends, so that the server never blocks on a full pipe.
        threading.Thread(target=_pump, args=(self.process.stdout, lines), daemon=True).start()
        urls, seen, deadline = {}, [], time.monotonic() + START_SECONDS
        while True:
            try:
                line = lines.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                self.kill9()
                raise AssertionError(f"the server did not get ready; it said:\n{''.join(seen)}{self.log.read_text()}")
            seen.append(line)
            if match := LISTENING.search(line):
                urls[match[1].lower()] = match[2]
            if line.strip() == "Ready.":
                return urls

    @property
    def blob_url(self):
        return f"{self.urls['blob']}/{ACCOUNT}"

    @property
    def queue_url(self):
        return f"{self.urls['queue']}/{ACCOUNT}"

    @property
    def table_url(self):
        return f"{self.urls['table']}/{ACCOUNT}"

    @property
    def file_url(self):
        return f"{self.urls['file']}/{ACCOUNT}"

    @property
    def smb_port(self):
        """Of a server that was started with `--smb-port 0`."""
        return int(self.urls["smb"].rpartition(":")[2])

    @property
    def admin_url(self):
        return self.urls["admin"]

    @property
    def conn_str(self):
        protocol = self.blob_url.partition(":")[0]
        services = {"Blob": self.blob_url, "Queue": self.queue_url, "Table": self.table_url, "File": self.file_url}
        endpoints = "".join(f"{service}Endpoint={url};" for service, url in services.items())
        return f"DefaultEndpointsProtocol={protocol};AccountName={ACCOUNT};AccountKey={KEY};{endpoints}"

    @property
    def settings(self):
        """For every client of ours. It reports the first answer it gets: a retry would hide what the server said."""
        certificate = self.folder / "tls/cert.pem"
        return {"retry_total": 0, "connection_verify": str(certificate) if certificate.exists() else True}

    def service(self, **settings):
        return BlobServiceClient.from_connection_string(self.conn_str, **{**self.settings, **settings})

    def queues(self, **settings):
        return QueueServiceClient.from_connection_string(self.conn_str, **{**self.settings, **settings})

    def queue(self, name, **settings):
        return QueueClient.from_connection_string(self.conn_str, name, **{**self.settings, **settings})

    def tables(self, **settings):
        return TableServiceClient.from_connection_string(self.conn_str, **{**self.settings, **settings})

    def shares(self, **settings):
        return ShareServiceClient.from_connection_string(self.conn_str, **{**self.settings, **settings})

    def keep_deleted_shares(self, days):
        """The client has no word for it; the service has."""
        policy = f"<ShareDeleteRetentionPolicy><Enabled>true</Enabled><Days>{days}</Days></ShareDeleteRetentionPolicy>"
        body = f"<StorageServiceProperties>{policy}</StorageServiceProperties>".encode()
        end = datetime.now(timezone.utc) + timedelta(hours=1)
        signature = generate_account_sas(ACCOUNT, KEY, resource_types="s", permission="w", expiry=end)
        url = f"{self.file_url}/?restype=service&comp=properties&{signature}"
        with DIRECT.open(urllib.request.Request(url, body, method="PUT"), timeout=10) as answer:
            assert answer.status == 202

    def advance(self, seconds):
        """Moves the server's time forward."""
        body = json.dumps({"advance_seconds": seconds}).encode()
        request = urllib.request.Request(f"{self.admin_url}/test/clock", body, {"Content-Type": "application/json"})
        with DIRECT.open(request, timeout=10) as answer:
            return json.load(answer)["offset_seconds"]

    def kill9(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Asks the server to end, and returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill9()
            raise AssertionError(f"the server did not stop within {STOP_SECONDS} s of SIGTERM") from None

    def restart(self):
        """Starts again on the same folder, after `kill9` or `stop`. The ports are new."""
        assert self.process.poll() is not None, "still running"
        return self.start()


def _pump(pipe, lines):
    for line in pipe:
        lines.put(line)
    lines.put(None)


def binary():
    return os.environ.get("LAZURITE_BIN") or ROOT / "target/debug/lazurite"


@contextmanager
def refused(status, code, kind=HttpResponseError):
    """The block must fail with exactly this status and error code."""
    with pytest.raises(kind) as caught:
        yield
    assert (caught.value.status_code, caught.value.error_code) == (status, code), caught.value.message


def readable(blob, permission="r"):
    """The URL of a blob with a signature."""
    signature = generate_blob_sas(
        ACCOUNT, blob.container_name, blob.blob_name, account_key=KEY, permission=BlobSasPermissions.from_string(permission),
        expiry=datetime.now(timezone.utc) + timedelta(hours=1),
    )
    return f"{blob.url}?{signature}"
