"""Many consumers on one queue: a message is one consumer's alone for a while, and comes back when that consumer is gone."""

from threading import Lock, Thread

from story import connect_to_queues, let_pass, new_queue, refused, tell

ORDERS = [f"order-{n}" for n in range(20)]
ALONE_SECONDS = 30


class Warehouse:
    """Where orders are carried out. To be told of one twice does no harm, so a message may come twice."""

    def __init__(self):
        self.shipped = {}
        self.lock = Lock()

    def ship(self, order, consumer):
        with self.lock:
            return self.shipped.setdefault(order, consumer) == consumer


def consume(name, consumer, warehouse):
    """Takes messages until there are none. A message is deleted only when its work is done."""
    queue = connect_to_queues().get_queue_client(name)
    for message in queue.receive_messages(messages_per_page=4, visibility_timeout=ALONE_SECONDS):
        if not warehouse.ship(message.content, consumer):
            tell(f"{consumer} is given {message.content} a second time: it is shipped already.")
        queue.delete_message(message)


def run_consumers(name, consumers, warehouse):
    threads = [Thread(target=consume, args=(name, consumer, warehouse)) for consumer in consumers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    with new_queue() as name:
        queue = connect_to_queues().get_queue_client(name)
        for order in ORDERS:
            queue.send_message(order)
        warehouse = Warehouse()

        before = queue.receive_message(visibility_timeout=ALONE_SECONDS)
        tell(f"Anna takes {before.content} and crashes before she ships it.")
        after = queue.receive_message(visibility_timeout=ALONE_SECONDS)
        warehouse.ship(after.content, "Ben")
        tell(f"Ben takes {after.content}, ships it, and crashes before he deletes the message.")

        run_consumers(name, ["Carl", "Dora", "Emil", "Fred"], warehouse)
        tell(f"Four others work meanwhile; {len(warehouse.shipped)} of {len(ORDERS)} orders are shipped.")
        assert set(ORDERS) - set(warehouse.shipped) == {before.content}
        assert queue.get_queue_properties().approximate_message_count == 2

        let_pass(ALONE_SECONDS + 1)
        tell("Nobody had to notice that two were gone: their messages can be seen again.")
        assert {message.content for message in queue.peek_messages(5)} == {before.content, after.content}
        run_consumers(name, ["Carl", "Dora"], warehouse)
        assert set(warehouse.shipped) == set(ORDERS)
        assert warehouse.shipped[after.content] == "Ben", "what was shipped was not shipped again"
        assert queue.get_queue_properties().approximate_message_count == 0

        with refused(404, "MessageNotFound"):
            queue.delete_message(before)
        tell("Anna comes back and would delete her message: she is told that it is no longer hers (404).")
        tell(f"All {len(ORDERS)} orders are shipped, each once.")


if __name__ == "__main__":
    main()
