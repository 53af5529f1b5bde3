"""A lock for a whole table: tables have no leases, so all writers agree on a blob whose lease stands for the table.

The server does not know of the agreement. It keeps two from holding the lease at once and frees it when its holder is
gone; that nobody writes without it is for the writers to keep.
"""

from azure.storage.blob import BlobLeaseClient

from story import connect, connect_to_tables, let_pass, new_container, new_table, refused, tell

LEASE_SECONDS = 30


def total(table):
    return sum(entity["amount"] for entity in table.list_entities())


def move(table, amount):
    """Two writes to two partitions, which no transaction can join: in between the sum is wrong."""
    for partition, change in (("north", -amount), ("south", amount)):
        entity = table.get_entity(partition, "stock")
        table.update_entity({**entity, "amount": entity["amount"] + change})


def main():
    with new_container() as container, new_table() as name:
        lock = f"locks/{name}"
        connect().get_blob_client(container, lock).upload_blob(b"")
        annas_table, bens_table = (connect_to_tables().get_table_client(name) for _ in range(2))
        annas_lock, bens_lock = (connect().get_blob_client(container, lock) for _ in range(2))
        for partition in ("north", "south"):
            annas_table.create_entity({"PartitionKey": partition, "RowKey": "stock", "amount": 100})

        lease = annas_lock.acquire_lease(LEASE_SECONDS)
        tell("Anna takes the lease on the blob that stands for the table.")
        with refused(409, "LeaseAlreadyPresent"):
            bens_lock.acquire_lease(LEASE_SECONDS)
        tell("Ben cannot have it (409), so he does not touch the table.")
        move(annas_table, 10)
        lease.release()
        tell("Anna moves 10 from north to south, in two writes, and gives the lease back.")

        lease = bens_lock.acquire_lease(LEASE_SECONDS)
        assert total(bens_table) == 200
        move(bens_table, 5)
        tell("Ben takes it, sees a sum that is right, and moves 5.")

        tell("Ben's machine dies before he gives it back.")
        let_pass(LEASE_SECONDS + 1)
        lease = BlobLeaseClient(annas_lock)
        lease.acquire(LEASE_SECONDS)
        assert total(annas_table) == 200
        lease.release()
        tell("When his 30 seconds are over Anna gets the lease, and finds everything in order.")


if __name__ == "__main__":
    main()
