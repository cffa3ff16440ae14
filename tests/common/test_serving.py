"""Prefect's server collects its garbage in a thread of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from common import serving, starting

MODULE = """
import gc, sqlite3, sys, threading

# A thread has the lock of its connection while SQLite waits: for another connection, and here for this thread.
connection = sqlite3.connect(":memory:", check_same_thread=False)
goes_on, collected = threading.Event(), threading.Event()
connection.create_function("waits", 0, lambda: goes_on.wait(float(sys.argv[1])))
ring = [connection.execute("VALUES (1), (2)")]
ring[0].fetchone()
ring.append(ring)
waiting = threading.Thread(target=lambda: print(*connection.execute("SELECT waits()").fetchone()))
waiting.start()
gc.callbacks.append(lambda phase, _: collected.set())
del ring
kept = []
while waiting.is_alive() and not collected.wait(0.01):
    kept.append([[] for _ in range(10_000)])
goes_on.set()
waiting.join()
"""


@pytest.mark.parametrize(("command", "seconds", "in_time"), [(serving.command, 60, "1"), (starting.command, 2, "0")])
def test_a_collection_never_waits_for_a_connection_of_another_thread(
    command: Callable[..., list[str]], seconds: float, in_time: str, tmp_path: Path
) -> None:
    """Where the thread collects that lets the other one go on, both wait: to free a cursor takes the lock."""
    (tmp_path / "locks.py").write_text(MODULE)
    env = {**os.environ, "PYTHONPATH": f"{starting.search_path()}{os.pathsep}{tmp_path}"}
    done = subprocess.run(
        command("locks", f"{seconds}"), cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.stdout == f"{in_time}\n", done.stderr
