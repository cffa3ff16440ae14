"""A worker ends within seconds after a signal, whatever it waits for, and at once after a second one."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.docs.blocks import ROOT

HANGING = """\
import time
from flows.fleet import stopping

stopping.END_SECONDS = {seconds}
stopping.stop_on_signals("anna"{leave})
first = True
while True:
    try:
        if first:
            first = False
            print("in", flush=True)
        time.sleep(1000)
    except KeyboardInterrupt:
        print("interrupted", flush=True)  # and then it waits for a server that is away
"""
SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


def start(seconds: float, leave: str = "") -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HANGING.format(seconds=seconds, leave=leave)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "in\n"
    return process


@pytest.mark.parametrize("number", SIGNALS)
def test_a_worker_that_waits_for_its_server_ends_in_time(number: signal.Signals) -> None:
    with start(0.5) as process:
        process.send_signal(number)
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (0, "interrupted\n")
    assert errors == (
        f"Worker anna stops: {number.name}. A second signal ends it at once.\n"
        "Worker anna stopped without an answer of the Prefect server. Agents in progress go on.\n"
    )


@pytest.mark.parametrize("second", SIGNALS)
def test_a_second_signal_ends_it_at_once(second: signal.Signals) -> None:
    with start(1000) as process:
        process.send_signal(signal.SIGTERM)
        assert process.stdout is not None
        assert process.stdout.readline() == "interrupted\n"
        process.send_signal(second)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.endswith("Worker anna stopped at once. Agents in progress go on.\n")


def test_a_worker_in_a_job_that_is_ended_leaves_instead() -> None:
    with start(0.1, ", lambda: print('leaves', flush=True)") as process:
        process.send_signal(signal.SIGTERM)
        assert process.stdout is not None
        assert process.stdout.readline() == "leaves\n"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 130
