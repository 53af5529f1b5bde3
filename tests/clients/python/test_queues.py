"""Queues: life, metadata, policies, settings; messages: put, take, peek, change, delete, clear."""

import base64
from datetime import datetime, timedelta, timezone

import pytest
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.storage.queue import (
    AccessPolicy,
    BinaryBase64DecodePolicy,
    BinaryBase64EncodePolicy,
    CorsRule,
    QueueAnalyticsLogging,
    QueueClient,
    QueueSasPermissions,
    QueueServiceClient,
    RetentionPolicy,
    TextBase64DecodePolicy,
    TextBase64EncodePolicy,
    generate_account_sas,
    generate_queue_sas,
)

from harness import ACCOUNT, KEY, refused


@pytest.fixture
def queues(server):
    return server.queues()


@pytest.fixture
def queue(queues):
    return queues.create_queue("line")


def test_a_queue_from_its_creation_to_its_end(queues):
    queue = queues.create_queue("line", metadata={"Colour": "blue"})
    assert queue.get_queue_properties().metadata == {"Colour": "blue"}
    # Not an error of the service, which answers 204, but the client makes one of it.
    with pytest.raises(ResourceExistsError):
        queues.create_queue("line", metadata={"Colour": "blue"})
    with refused(409, "QueueAlreadyExists", ResourceExistsError):
        queues.create_queue("line", metadata={"Colour": "red"})
    queue.set_queue_metadata({"Size": "2"})
    properties = queue.get_queue_properties()
    assert (properties.metadata, properties.approximate_message_count) == ({"Size": "2"}, 0)
    queue.delete_queue()
    with refused(404, "QueueNotFound", ResourceNotFoundError):
        queue.get_queue_properties()
    queues.create_queue("line")


def test_queues_are_listed_in_pages(queues):
    names = [f"line-{n}" for n in range(7)]
    for name in reversed(names):
        queues.create_queue(name, metadata={"n": name})
    queues.create_queue("other")
    listed = list(queues.list_queues(name_starts_with="line", include_metadata=True, results_per_page=3))
    assert [(queue.name, queue.metadata) for queue in listed] == [(name, {"n": name}) for name in names]
    assert len(list(queues.list_queues())) == 8


def test_a_message_from_its_start_to_its_end(server, queue):
    sent = queue.send_message("hello & <goodbye>", visibility_timeout=10, time_to_live=600)
    assert sent.expires_on - sent.inserted_on == timedelta(seconds=600)
    assert sent.next_visible_on - sent.inserted_on == timedelta(seconds=10)
    assert queue.receive_message() is None and queue.peek_messages() == []
    assert queue.get_queue_properties().approximate_message_count == 1
    server.advance(11)
    peeked = queue.peek_messages()[0]
    assert (peeked.content, peeked.dequeue_count, peeked.id) == ("hello & <goodbye>", 0, sent.id)
    taken = queue.receive_message(visibility_timeout=30)
    assert (taken.content, taken.dequeue_count) == ("hello & <goodbye>", 1)
    assert queue.receive_message() is None
    changed = queue.update_message(taken, visibility_timeout=60, content="changed")
    assert changed.pop_receipt != taken.pop_receipt
    with refused(404, "MessageNotFound", ResourceNotFoundError):
        queue.delete_message(sent.id, taken.pop_receipt)
    server.advance(61)
    again = queue.receive_message()
    assert (again.content, again.dequeue_count) == ("changed", 2)
    with refused(404, "MessageNotFound", ResourceNotFoundError):
        queue.delete_message(changed)
    queue.delete_message(again)
    with refused(404, "MessageNotFound", ResourceNotFoundError):
        queue.delete_message(again)
    assert queue.get_queue_properties().approximate_message_count == 0


def test_messages_come_in_their_order_over_several_pages(queue):
    for n in range(70):
        queue.send_message(str(n))
    taken = list(queue.receive_messages(messages_per_page=32, visibility_timeout=60))
    assert [message.content for message in taken] == [str(n) for n in range(70)]
    assert list(queue.receive_messages(messages_per_page=32)) == []
    queue.clear_messages()
    assert queue.get_queue_properties().approximate_message_count == 0
    assert queue.send_message("x", time_to_live=-1).expires_on.year == 9999


@pytest.mark.parametrize("content", ["", "plain", "ä€😀", " <a> &amp; ", "line\nbreak", "x" * 65_536])
def test_texts_come_back_as_they_went(queue, content):
    queue.send_message(content)
    assert queue.peek_messages()[0].content == content
    assert queue.receive_message().content == content


def test_the_clients_own_encodings(server, queue):
    text = server.queue("line", message_encode_policy=TextBase64EncodePolicy(), message_decode_policy=TextBase64DecodePolicy())
    text.send_message("grüße")
    assert queue.peek_messages()[0].content == base64.b64encode("grüße".encode()).decode()
    assert text.receive_message().content == "grüße"
    binary = server.queue("line", message_encode_policy=BinaryBase64EncodePolicy(), message_decode_policy=BinaryBase64DecodePolicy())
    binary.send_message(bytes(range(256)))
    assert binary.receive_message().content == bytes(range(256))


def test_what_is_out_of_range(queue):
    with refused(413, "RequestBodyTooLarge"):
        queue.send_message("x" * 65_537)
    with refused(400, "InvalidQueryParameterValue"):
        queue.send_message("x", visibility_timeout=10, time_to_live=5)
    with refused(400, "OutOfRangeQueryParameterValue"):
        queue.receive_message(visibility_timeout=604_801)
    sent, other = queue.send_message("x"), queue.send_message("y")
    with refused(400, "PopReceiptMismatch"):
        queue.delete_message(sent.id, other.pop_receipt)
    with refused(400, "InvalidQueryParameterValue"):
        queue.delete_message(sent.id, "AgAAAAMAAAAAAAAA")


def test_signatures_and_stored_policies(server, queue):
    end = datetime.now(timezone.utc) + timedelta(hours=1)
    url = f"{server.queue_url}/line"

    def holder(token):
        return QueueClient.from_queue_url(f"{url}?{token}", **server.settings)

    adder = holder(generate_queue_sas(ACCOUNT, "line", KEY, permission=QueueSasPermissions(add=True), expiry=end))
    adder.send_message("x")
    with refused(403, "AuthorizationPermissionMismatch"):
        adder.receive_message()
    worker = holder(generate_queue_sas(ACCOUNT, "line", KEY, permission=QueueSasPermissions(process=True, update=True), expiry=end))
    taken = worker.receive_message()
    worker.delete_message(worker.update_message(taken, visibility_timeout=5))
    with refused(403, "AuthorizationPermissionMismatch"):
        worker.peek_messages()

    policy = AccessPolicy(permission=QueueSasPermissions(read=True), start=end - timedelta(hours=2), expiry=end)
    queue.set_queue_access_policy({"readers": policy})
    assert queue.get_queue_access_policy()["readers"].permission == "r"
    reader = holder(generate_queue_sas(ACCOUNT, "line", KEY, policy_id="readers"))
    assert reader.peek_messages() == []
    queue.set_queue_access_policy({})
    with refused(403, "AuthenticationFailed"):
        reader.peek_messages()

    token = generate_account_sas(ACCOUNT, KEY, resource_types="sco", permission="rwdlacup", expiry=end, services="q")
    account = QueueServiceClient(server.queue_url, credential=token, **server.settings)
    account.create_queue("third")
    assert [found.name for found in account.list_queues()] == ["line", "third"]
    account.delete_queue("third")


def test_settings(queues):
    settings = queues.get_service_properties()
    assert (settings["cors"], settings["analytics_logging"].read) == ([], False)
    logging = QueueAnalyticsLogging(read=True, write=True, delete=True, retention_policy=RetentionPolicy(True, 5))
    queues.set_service_properties(analytics_logging=logging, cors=[CorsRule(["http://page"], ["GET"], max_age_in_seconds=5)])
    settings = queues.get_service_properties()
    assert settings["analytics_logging"].retention_policy.days == 5
    assert settings["cors"][0].allowed_origins == "http://page"
    assert settings["hour_metrics"].enabled is False


def test_statistics_come_from_the_secondary(server):
    secondary = server.queue_url.partition("://")[2] + "-secondary"
    queues = server.queues(secondary_hostname=secondary, location_mode="secondary")
    assert queues.get_service_stats()["geo_replication"]["status"] == "live"
