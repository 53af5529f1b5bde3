"""The programs in examples/ do what they claim, on the test clock."""

import os
import subprocess
import sys
import time

import pytest

from harness import ROOT

EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if path.name != "story.py")
LONGEST_SECONDS = 30  # Nothing waits: leases end on the test clock.


def test_there_are_examples():
    assert len(EXAMPLES) == 9


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example(server, example):
    began = time.monotonic()
    settings = {"AZURE_STORAGE_CONNECTION_STRING": server.conn_str, "LAZURITE_TEST_CLOCK": server.admin_url}
    done = subprocess.run(
        [sys.executable, example],
        env={**os.environ, **settings},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip(), "it tells its story"
    assert time.monotonic() - began < LONGEST_SECONDS
    left = [*server.service().list_containers(), *server.queues().list_queues(), *server.tables().list_tables()]
    assert not left, "it leaves nothing behind"
