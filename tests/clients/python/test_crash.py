"""What was acknowledged is there after kill -9 and after an orderly end."""

import hashlib
import random
import threading
import time

import pytest
from azure.core.exceptions import AzureError
from azure.storage.blob import AccessPolicy, BlobBlock, ContentSettings

from harness import refused

MIB = 1024 * 1024


def describe(service):
    """Everything a client can see, in one value."""
    seen = {}
    for container in service.list_containers(include_metadata=True):
        client = service.get_container_client(container)
        policy = client.get_container_access_policy()
        seen[container.name] = (
            container.etag, container.last_modified, container.metadata, container.lease.state,
            policy["public_access"], [identifier.id for identifier in policy["signed_identifiers"]],
        )
        for found in client.list_blobs(include=["metadata", "snapshots", "uncommittedblobs"]):
            blob = client.get_blob_client(found.name, snapshot=found.snapshot)
            blocks = [[(block.id, block.size) for block in blocks] for blocks in blob.get_block_list("all")]
            content = blob.download_blob().readall() if found.etag else b""
            seen[container.name, found.name, found.snapshot] = (
                found.etag, found.last_modified, found.creation_time, found.metadata, found.content_settings.content_type,
                found.lease.state, found.size, hashlib.sha256(content).hexdigest(), blocks,
            )
    return seen


@pytest.fixture(params=["kill -9", "SIGTERM"])
def end(request, server):
    def end():
        if request.param == "kill -9":
            server.kill9()
        else:
            assert server.stop() == 0

    return end


def test_everything_is_there_afterwards(server, service, end):
    box = service.create_container("box", metadata={"colour": "blue"})
    box.set_container_access_policy({"readers": AccessPolicy()}, public_access="blob")
    box.acquire_lease()
    dice = random.Random(3)
    for size in (0, 1, 4096, 70_000, 5 * MIB):
        box.upload_blob(f"size-{size}", dice.randbytes(size), metadata={"size": str(size)})
    blob = box.get_blob_client("blocks")
    for number in range(10):
        blob.stage_block(f"{number:02}", dice.randbytes(300_000))
    blob.commit_block_list([BlobBlock(f"{number:02}") for number in range(9)], content_settings=ContentSettings("text/plain"))
    blob.create_snapshot()
    blob.upload_blob(b"after the snapshot", overwrite=True)
    blob.acquire_lease()
    box.get_blob_client("staged only").stage_block("a", b"staged")
    box.upload_blob("deleted", b"x")
    box.delete_blob("deleted")
    service.create_container("gone").delete_container()
    before = describe(service)
    assert len(before) == 9

    end()
    server.restart()

    service = server.service()
    assert describe(service) == before
    blob = service.get_blob_client("box", "blocks")
    with refused(412, "LeaseIdMissing"):
        blob.upload_blob(b"x", overwrite=True)
    staged = service.get_blob_client("box", "staged only")
    staged.commit_block_list([BlobBlock("a")])
    assert staged.download_blob().readall() == b"staged"
    fresh = service.get_container_client("box").upload_blob("fresh", b"x").get_blob_properties().etag
    assert fresh.strip('"') not in {value[0].strip('"') for value in before.values() if value[0]}


def test_time_does_not_go_back(server, service, end):
    blob = service.create_container("box").upload_blob("b", b"x")
    blob.acquire_lease(60)
    assert server.advance(50) == 50
    end()
    server.restart()
    blob = server.service().get_blob_client("box", "b")
    assert blob.get_blob_properties().lease.state == "leased"
    assert server.advance(10) == 60
    assert blob.get_blob_properties().lease.state == "expired"


def test_nothing_acknowledged_is_lost_under_load(server):
    """Writers go on until the server is killed beneath them, three times over."""
    server.service().create_container("box")
    acknowledged = {}  # name -> content that the server confirmed last
    under_way = {}  # name -> content that it may or may not have taken

    def write(writer, stop):
        service, dice, number = server.service(connection_timeout=2, read_timeout=5), random.Random(writer), 0
        while not stop.is_set():
            number += 1
            name = f"{writer}/{number % 7}"
            content = hashlib.sha256(f"{writer} {number}".encode()).digest() * dice.choice([1, 100, 5000])
            under_way[name] = content
            try:
                service.get_blob_client("box", name).upload_blob(content, overwrite=True)
            except AzureError:
                return
            acknowledged[name] = content
            del under_way[name]

    for _ in range(3):
        stop = threading.Event()
        writers = [threading.Thread(target=write, args=(writer, stop)) for writer in range(6)]
        for writer in writers:
            writer.start()
        time.sleep(1)
        server.kill9()
        stop.set()
        for writer in writers:
            writer.join()
        server.restart()

        box = server.service().get_container_client("box")
        found = {name: box.download_blob(name).readall() for name in box.list_blob_names()}
        assert set(acknowledged) <= set(found)
        for name, content in found.items():
            assert content in (acknowledged.get(name), under_way.get(name)), f"{name} is neither old nor new"
        acknowledged = found
        under_way.clear()
    assert len(acknowledged) > 6
