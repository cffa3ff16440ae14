"""Ending background processes, whoever started them."""

from __future__ import annotations

import subprocess
import sys

import psutil

from deployments import background
from tests.deployments.installation import ROOT


def test_a_process_whose_parent_does_not_ask_for_its_end_has_ended() -> None:
    """As with a parent that is process 1 of a container. The grace is longer than the test may take."""
    ours = subprocess.Popen(["sleep", "100000"], start_new_session=True)
    command = f"import psutil; from deployments.background import end; end(psutil.Process({ours.pid}), grace=100000)"
    try:
        subprocess.run([sys.executable, "-c", command], cwd=ROOT, timeout=120, check=True)
        assert psutil.Process(ours.pid).status() == psutil.STATUS_ZOMBIE
    finally:
        ours.kill()
        ours.wait()


def test_a_process_that_ignores_the_signal_is_killed() -> None:
    script = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
    stubborn = subprocess.Popen(["bash", "-c", script], stdout=subprocess.PIPE, start_new_session=True)
    assert stubborn.stdout is not None
    with stubborn.stdout:
        assert stubborn.stdout.readline() == b"ready\n"
        process = psutil.Process(stubborn.pid)
        background.end(process, grace=0.2)
    assert not process.is_running()
