"""Optimistic update: Anna and Ben change one document; Ben loses the race, is told, and tries again.

Nobody waits for anybody. Each reads the document with its ETag and writes with "if it is still that one" (If-Match).
Whoever comes second gets 412, reads again and repeats, so no change is lost.
"""

from azure.core import MatchConditions
from azure.core.exceptions import ResourceModifiedError

from story import connect, new_container, refused, tell


def read(blob):
    stream = blob.download_blob()
    return stream.readall().decode(), stream.properties.etag


def write_if_unchanged(blob, text, etag):
    return blob.upload_blob(text, overwrite=True, etag=etag, match_condition=MatchConditions.IfNotModified)


def main():
    with new_container() as container:
        anna = connect().get_blob_client(container, "guests.txt")
        ben = connect().get_blob_client(container, "guests.txt")
        anna.upload_blob("Zoe")

        annas_text, annas_etag = read(anna)
        bens_text, bens_etag = read(ben)
        assert annas_etag == bens_etag
        tell("Anna and Ben read the same list.")

        write_if_unchanged(anna, annas_text + ", Anna's friend", annas_etag)
        tell("Anna adds her friend.")

        with refused(412, "ConditionNotMet"):
            write_if_unchanged(ben, bens_text + ", Ben's friend", bens_etag)
        assert read(anna)[0] == "Zoe, Anna's friend"
        tell("Ben's write is refused (412): the list is no longer the one he read. Nothing is lost.")

        while True:
            text, etag = read(ben)
            try:
                write_if_unchanged(ben, text + ", Ben's friend", etag)
                break
            except ResourceModifiedError:
                continue  # Somebody was quicker again.
        assert read(anna)[0] == "Zoe, Anna's friend, Ben's friend"
        tell("Ben reads again, adds his friend, and both are on the list.")


if __name__ == "__main__":
    main()
