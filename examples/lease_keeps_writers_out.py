"""A 15 second lease: while Anna holds it nobody else writes, and when she is gone it frees itself."""

from story import connect, let_pass, new_container, refused, tell


def main():
    with new_container() as container:
        anna = connect().get_blob_client(container, "plan.txt")
        ben = connect().get_blob_client(container, "plan.txt")
        anna.upload_blob("draft")

        lease = anna.acquire_lease(lease_duration=15)
        tell("Anna takes a lease of 15 seconds.")

        with refused(412, "LeaseIdMissing"):
            ben.upload_blob("Ben's plan", overwrite=True)
        with refused(412, "LeaseIdMissing"):
            ben.delete_blob()
        with refused(409, "LeaseAlreadyPresent"):
            ben.acquire_lease(lease_duration=15)
        tell("Ben can neither write (412) nor delete (412) nor take the lease (409).")

        assert ben.download_blob().readall() == b"draft"
        anna.upload_blob("Anna's plan", overwrite=True, lease=lease)
        assert ben.download_blob().readall() == b"Anna's plan"
        tell("He can read; and Anna, who sends her lease, can write.")

        tell("Then Anna's machine fails.")
        let_pass(16)
        assert ben.get_blob_properties().lease.state == "expired"
        bens_lease = ben.acquire_lease(lease_duration=15)
        ben.upload_blob("Ben's plan", overwrite=True, lease=bens_lease)
        tell("Nobody had to clean up: the lease has ended, and Ben takes it and writes.")

        with refused(412, "LeaseIdMismatchWithBlobOperation"):
            anna.upload_blob("Anna again", overwrite=True, lease=lease)
        assert anna.download_blob().readall() == b"Ben's plan"
        tell("Anna comes back with her old lease and is refused (412): she cannot undo his work unknowingly.")


if __name__ == "__main__":
    main()
