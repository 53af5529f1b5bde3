"""The usual way with a lease: acquire for 30 seconds, update, release, whatever happens in between."""

from contextlib import contextmanager

from story import connect, new_container, refused, tell


@contextmanager
def leased(blob, seconds):
    lease = blob.acquire_lease(lease_duration=seconds)
    try:
        yield lease
    finally:
        lease.release()


def main():
    with new_container() as container:
        anna = connect().get_blob_client(container, "counter")
        ben = connect().get_blob_client(container, "counter")
        anna.upload_blob("1")

        with leased(anna, 30) as lease:
            tell("Anna takes the lease for 30 seconds.")
            value = int(anna.download_blob().readall())
            with refused(409, "LeaseAlreadyPresent"):
                ben.acquire_lease(lease_duration=30)
            anna.upload_blob(str(value + 1), overwrite=True, lease=lease)
            tell("She reads, counts up and writes; Ben, who wants to do the same, has to wait (409).")
        assert anna.get_blob_properties().lease.state == "available"
        tell("She gives the lease back long before its end.")

        with leased(ben, 30) as lease:
            value = int(ben.download_blob().readall())
            ben.upload_blob(str(value + 1), overwrite=True, lease=lease)
        assert anna.download_blob().readall() == b"3"
        tell("Ben takes it at once and counts on from what she wrote: 3.")


if __name__ == "__main__":
    main()
