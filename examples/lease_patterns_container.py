"""The three patterns on a container, where the server enforces only one thing: a leased container is not deleted
without its lease.

Everything else is let through without an id, and checked when it carries one. So here exclusive writing too is an
agreement: everybody takes the lease first and sends its id, and an id out of date is refused.
"""

import uuid

from story import connect, new_container, refused, tell

SOMEBODY_ELSES = str(uuid.uuid4())


def mark(container, who, **lease):
    container.set_container_metadata({"by": who}, **lease)


def marked(container, **lease):
    return container.get_container_properties(**lease).metadata.get("by")


def only_delete_is_enforced(anna, ben):
    lease = anna.acquire_lease(lease_duration=30)
    with refused(412, "LeaseIdMissing"):
        ben.delete_container()
    with refused(412, "LeaseIdMismatchWithContainerOperation"):
        ben.delete_container(lease=SOMEBODY_ELSES)
    mark(ben, "Ben")
    assert marked(ben) == "Ben"
    ben.upload_blob("note", b"from Ben")
    ben.delete_blob("note")
    lease.release()
    tell("While Anna holds the lease Ben cannot delete the container (412); all else he can.")


def exclusive_write_shared_read(anna, ben):
    """Writers take the lease and send its id. Readers take none."""
    lease = anna.acquire_lease(lease_duration=30)
    mark(anna, "Anna", lease=lease)
    with refused(409, "LeaseAlreadyPresent"):
        ben.acquire_lease(lease_duration=30)
    with refused(412, "LeaseIdMismatchWithContainerOperation"):
        mark(ben, "Ben", lease=SOMEBODY_ELSES)
    assert marked(ben) == "Anna"
    lease.release()
    tell("Exclusive write, shared read: a writer without the lease finds out when taking it (409) or by its id (412).")


def exclusive_write_exclusive_read(anna, ben):
    """Whoever reads or writes takes the lease and sends its id."""
    lease = anna.acquire_lease(lease_duration=30)
    mark(anna, "Anna", lease=lease)
    assert marked(anna, lease=lease) == "Anna"
    with refused(409, "LeaseAlreadyPresent"):
        ben.acquire_lease(lease_duration=30)
    with refused(412, "LeaseIdMismatchWithContainerOperation"):
        marked(ben, lease=SOMEBODY_ELSES)
    lease.release()

    lease = ben.acquire_lease(lease_duration=30)
    assert marked(ben, lease=lease) == "Anna"
    lease.release()
    tell("Exclusive write, exclusive read: one after the other.")


def shared_write_exclusive_read(anna, ben):
    """Everybody writes without a lease; readers take turns by taking it."""
    mark(anna, "Anna")
    mark(ben, "Ben")
    lease = anna.acquire_lease(lease_duration=30)
    assert marked(anna, lease=lease) == "Ben"
    with refused(409, "LeaseAlreadyPresent"):
        ben.acquire_lease(lease_duration=30)
    mark(ben, "Ben again")  # Unlike on a blob, the reader's lease does not hold writers up.
    assert marked(anna, lease=lease) == "Ben again"
    lease.release()
    tell("Shared write, exclusive read: readers take turns, writers go on meanwhile.")


def main():
    patterns = (
        only_delete_is_enforced,
        exclusive_write_shared_read,
        exclusive_write_exclusive_read,
        shared_write_exclusive_read,
    )
    for pattern in patterns:
        with new_container() as container:
            anna = connect().get_container_client(container)
            ben = connect().get_container_client(container)
            pattern(anna, ben)


if __name__ == "__main__":
    main()
