"""Last writer wins: no condition, no lease. Each write is whole, the last one stays, and an earlier one can be lost.

Good for what is written anew each time (a status, a rendered page), wrong for what is read, changed and written back.
"""

from concurrent.futures import ThreadPoolExecutor

from story import connect, new_container, tell


def main():
    with new_container() as container:
        anna = connect().get_blob_client(container, "list.txt")
        ben = connect().get_blob_client(container, "list.txt")
        anna.upload_blob("Zoe")

        annas = anna.download_blob().readall().decode()
        bens = ben.download_blob().readall().decode()
        anna.upload_blob(annas + ", Anna", overwrite=True)
        ben.upload_blob(bens + ", Ben", overwrite=True)
        assert anna.download_blob().readall() == b"Zoe, Ben"
        tell("Anna and Ben read, add and write back. Ben was last: Anna's addition is gone, and nobody was told.")

        pages = [character.encode() * 100_000 for character in "abcdefgh"]
        with ThreadPoolExecutor(len(pages)) as writers:
            etags = list(writers.map(lambda page: anna.upload_blob(page, overwrite=True)["etag"], pages))
        found = anna.download_blob()
        content = found.readall()
        assert content in pages
        assert len(set(etags)) == len(pages)
        assert etags[pages.index(content)] == found.properties.etag
        tell(f"Eight write at once: one whole page stays, that of writer '{content[:1].decode()}', never a mixture.")


if __name__ == "__main__":
    main()
