"""Queues through the asynchronous client."""

import asyncio

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.queue.aio import QueueServiceClient

from harness import refused


@pytest.fixture
def run(server):
    """Runs a story with a client of its own."""

    def run(story):
        async def told():
            async with QueueServiceClient.from_connection_string(server.conn_str, **server.settings) as queues:
                return await story(queues)

        return asyncio.run(told())

    return run


def test_a_message_from_its_start_to_its_end(run):
    async def story(queues):
        queue = await queues.create_queue("line", metadata={"a": "1"})
        sent = await queue.send_message("hello")
        assert [peeked.id for peeked in await queue.peek_messages()] == [sent.id]
        taken = await queue.receive_message(visibility_timeout=30)
        changed = await queue.update_message(taken, visibility_timeout=0, content="changed")
        assert (await queue.peek_messages())[0].content == "changed"
        with refused(404, "MessageNotFound", ResourceNotFoundError):
            await queue.delete_message(taken)
        await queue.delete_message(changed)
        assert (await queue.get_queue_properties()).approximate_message_count == 0
        assert [found.name async for found in queues.list_queues()] == ["line"]
        await queue.delete_queue()

    run(story)


def test_a_hundred_messages_go_to_sixteen_consumers_each_to_one(run):
    async def story(queues):
        queue = await queues.create_queue("line")
        await asyncio.gather(*(queue.send_message(str(n)) for n in range(100)))
        processed = []

        async def consume():
            async for message in queue.receive_messages(messages_per_page=4, visibility_timeout=60):
                processed.append(message.content)
                await queue.delete_message(message)

        await asyncio.gather(*(consume() for _ in range(16)))
        assert sorted(processed, key=int) == [str(n) for n in range(100)]
        assert (await queue.get_queue_properties()).approximate_message_count == 0

    run(story)


def test_sixteen_update_with_one_receipt_and_one_succeeds(run):
    async def story(queues):
        queue = await queues.create_queue("line")
        await queue.send_message("0")
        taken = await queue.receive_message(visibility_timeout=60)

        async def update(n):
            try:
                await queue.update_message(taken, visibility_timeout=60, content=str(n))
                return "done"
            except ResourceNotFoundError as error:
                return error.error_code

        outcomes = sorted(await asyncio.gather(*(update(n) for n in range(16))))
        assert outcomes == ["MessageNotFound"] * 15 + ["done"]

    run(story)
