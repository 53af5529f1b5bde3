"""Who may read and write a blob that is leased: three patterns.

The server enforces exclusive writing: while a lease is held, a write must carry its id. Reading it leaves open; a
read that carries an id is checked, one that carries none is let through. So exclusive reading is an agreement: every
reader takes the lease first. Which of the two is shared is decided by who takes a lease.
"""

from story import connect, new_container, refused, tell


def exclusive_write_shared_read(anna, ben):
    """One writer at a time holds the lease. Readers take none."""
    lease = anna.acquire_lease(lease_duration=30)
    with refused(412, "LeaseIdMissing"):
        ben.upload_blob("Ben", overwrite=True)
    assert ben.download_blob().readall() == b"start"
    anna.upload_blob("Anna", overwrite=True, lease=lease)
    assert ben.download_blob().readall() == b"Anna"
    lease.release()
    tell("Exclusive write, shared read: only Anna writes, everybody reads.")


def exclusive_write_exclusive_read(anna, ben):
    """Whoever reads or writes holds the lease, and sends its id with both."""
    lease = anna.acquire_lease(lease_duration=30)
    assert anna.download_blob(lease=lease).readall() == b"start"
    anna.upload_blob("Anna", overwrite=True, lease=lease)
    with refused(409, "LeaseAlreadyPresent"):
        ben.acquire_lease(lease_duration=30)
    old_id = lease.id
    lease.release()

    lease = ben.acquire_lease(lease_duration=30)
    assert ben.download_blob(lease=lease).readall() == b"Anna"
    with refused(412, "LeaseIdMismatchWithBlobOperation"):
        anna.download_blob(lease=old_id)
    with refused(412, "LeaseIdMismatchWithBlobOperation"):
        anna.upload_blob("Anna again", overwrite=True, lease=old_id)
    assert anna.download_blob().readall() == b"Anna"  # The server lets a read without an id through.
    lease.release()
    tell("Exclusive write, exclusive read: who wants either waits for the lease (409); an id out of date is refused (412).")


def shared_write_exclusive_read(anna, ben):
    """Everybody writes without a lease, the last one wins. A reader takes the lease, and nothing moves while it reads."""
    anna.upload_blob("Anna", overwrite=True)
    ben.upload_blob("Ben", overwrite=True)
    lease = anna.acquire_lease(lease_duration=30)
    before = anna.download_blob(lease=lease)
    with refused(412, "LeaseIdMissing"):
        ben.upload_blob("Ben again", overwrite=True)
    with refused(409, "LeaseAlreadyPresent"):
        ben.acquire_lease(lease_duration=30)
    after = anna.download_blob(lease=lease)
    assert before.readall() == after.readall() == b"Ben"
    lease.release()
    ben.upload_blob("Ben again", overwrite=True)
    tell("Shared write, exclusive read: everybody writes, except while Anna reads.")


def main():
    for pattern in (exclusive_write_shared_read, exclusive_write_exclusive_read, shared_write_exclusive_read):
        with new_container() as container:
            anna = connect().get_blob_client(container, "shared")
            ben = connect().get_blob_client(container, "shared")
            anna.upload_blob("start")
            pattern(anna, ben)


if __name__ == "__main__":
    main()
