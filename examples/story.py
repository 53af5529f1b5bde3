"""What the examples share: a connection, a way to let time pass, and a way to say what must be refused."""

import json
import os
import time
import urllib.request
import uuid
from contextlib import contextmanager

from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobLeaseClient, BlobServiceClient
from azure.storage.queue import QueueServiceClient

# The well-known development account on this machine; the key is public.
DEVELOPMENT = (
    "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;"
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;"
    "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;"
    "QueueEndpoint=http://127.0.0.1:10001/devstoreaccount1;"
    "TableEndpoint=http://127.0.0.1:10002/devstoreaccount1;"
)


def connect():
    """A client of its own for each party in a story."""
    return BlobServiceClient.from_connection_string(os.environ.get("AZURE_STORAGE_CONNECTION_STRING") or DEVELOPMENT)


@contextmanager
def new_container():
    """The name of a container that exists while the story is told."""
    container = connect().create_container(f"example-{uuid.uuid4()}")
    try:
        yield container.container_name
    finally:
        if container.exists():
            if container.get_container_properties().lease.status == "locked":
                BlobLeaseClient(container).break_lease(0)
            container.delete_container()


def connect_to_queues():
    """The same for queues."""
    text = os.environ.get("AZURE_STORAGE_CONNECTION_STRING") or DEVELOPMENT
    return QueueServiceClient.from_connection_string(text)


@contextmanager
def new_queue():
    """The name of a queue that exists while the story is told."""
    queue = connect_to_queues().create_queue(f"example-{uuid.uuid4()}")
    try:
        yield queue.queue_name
    finally:
        queue.delete_queue()


def connect_to_tables():
    """The same for tables."""
    text = os.environ.get("AZURE_STORAGE_CONNECTION_STRING") or DEVELOPMENT
    return TableServiceClient.from_connection_string(text)


@contextmanager
def new_table():
    """The name of a table that exists while the story is told."""
    table = connect_to_tables().create_table(f"example{uuid.uuid4().hex}")
    try:
        yield table.table_name
    finally:
        table.delete_table()


def let_pass(seconds):
    """Time goes by: on the test clock at once, otherwise really."""
    clock = os.environ.get("LAZURITE_TEST_CLOCK")
    if not clock:
        tell(f"... {seconds} seconds pass ...")
        time.sleep(seconds)
        return
    body = json.dumps({"advance_seconds": seconds}).encode()
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    direct.open(urllib.request.Request(f"{clock.rstrip('/')}/test/clock", body, method="POST"), timeout=10).close()
    tell(f"... {seconds} seconds pass, on the test clock ...")


@contextmanager
def refused(status, code):
    """What happens inside must be refused with exactly this answer."""
    try:
        yield
    except HttpResponseError as error:
        assert (error.status_code, error.error_code) == (status, code), error
        return
    raise AssertionError(f"expected {status} {code}, but it was done")


def tell(line):
    print(line, flush=True)
