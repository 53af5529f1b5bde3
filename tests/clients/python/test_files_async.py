"""Files through the asynchronous client."""

import asyncio

import pytest
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.storage.fileshare.aio import ShareServiceClient

from harness import refused
from trees import HOSTILE, MIB, digests, parents, tree


@pytest.fixture
def run(server):
    """Runs a story with a client of its own."""

    def run(story):
        async def told():
            async with ShareServiceClient.from_connection_string(server.conn_str, **server.settings) as shares:
                return await story(shares)

        return asyncio.run(told())

    return run


def test_a_tree_goes_up_and_comes_down(run):
    files = tree(2)

    async def download(share, path=""):
        found = {}
        async for entry in share.list_directories_and_files(path or None, results_per_page=7):
            below = f"{path}/{entry.name}" if path else entry.name
            if entry.is_directory:
                found.update(await download(share, below) or {below + "/": None})
            else:
                stream = await share.get_file_client(below).download_file(max_concurrency=3)
                found[below] = await stream.readall()
        return found

    async def story(shares):
        share = await shares.create_share("docs")
        made = set()
        for path in files:
            for above in parents(path):
                if above not in made:
                    await share.create_directory(above)
                    made.add(above)
        await asyncio.gather(
            *(
                share.get_file_client(path).upload_file(content, max_concurrency=3)
                for path, content in files.items() if content is not None
            )
        )
        expected = {path: content for path, content in files.items() if path != "nothing/"}
        assert digests(await download(share)) == digests(expected)
        await share.create_directory("other")
        await share.get_directory_client("dir").rename_directory("other/dir")
        moved = await download(share, "other/dir")
        assert moved == {f"other/{path}": content for path, content in files.items() if path.startswith("dir/")}

    run(story)


def test_a_file_from_its_creation_to_its_end(run):
    async def story(shares):
        share = await shares.create_share("docs", quota=5)
        assert (await share.get_share_properties()).quota == 5
        file = share.get_file_client("file")
        await file.create_file(2_000)
        await file.upload_range(b"middle", 1_000, 6)
        assert await file.get_ranges() == [{"start": 512, "end": 1023}]
        await file.clear_range(512, 512)
        await file.resize_file(5)
        lease = await file.acquire_lease()
        with refused(412, "LeaseIdMissing"):
            await file.delete_file()
        await file.set_file_metadata({"a": "1"}, lease=lease)
        moved = await file.rename_file("moved", source_lease=lease)
        assert (await moved.get_file_properties()).metadata == {"a": "1"}
        await moved.delete_file(lease=lease.id)
        with refused(404, "ResourceNotFound", ResourceNotFoundError):
            await moved.get_file_properties()
        assert [found.name async for found in shares.list_shares()] == ["docs"]
        assert [found async for found in share.get_directory_client().list_handles(recursive=True)] == []
        await share.delete_share()

    run(story)


def test_hostile_names(run):
    async def story(shares):
        share = await shares.create_share("docs")

        async def travel(name):
            file = share.get_file_client(f"from {name}")
            await file.upload_file(name.encode())
            moved = await file.rename_file(f"to {name}")
            return await (await moved.download_file()).readall()

        assert await asyncio.gather(*(travel(name) for name in HOSTILE)) == [name.encode() for name in HOSTILE]
        listed = sorted([found.name async for found in share.list_directories_and_files(results_per_page=4)])
        assert listed == sorted(f"to {name}" for name in HOSTILE)

    run(story)


def test_sixteen_at_once(run):
    async def story(shares):
        share = await shares.create_share("docs")
        file = share.get_file_client("file")
        size = MIB // 8
        await file.create_file(16 * size)
        await asyncio.gather(*(file.upload_range(bytes([n + 1]) * size, n * size, size) for n in range(16)))
        content = await (await file.download_file()).readall()
        assert content == b"".join(bytes([n + 1]) * size for n in range(16))

        async def make(n):
            try:
                await share.create_directory("once")
                return "made"
            except ResourceExistsError as error:
                return error.error_code

        outcomes = sorted(await asyncio.gather(*(make(n) for n in range(16))))
        assert outcomes == ["ResourceAlreadyExists"] * 15 + ["made"]

    run(story)
