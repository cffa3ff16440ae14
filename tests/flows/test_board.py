"""What is printed where there is no terminal: changes of state, and each reason of a wait once."""

from __future__ import annotations

import io
import logging
import re
import sys

import pytest
from rich.console import Console

from common.progress import Event, report
from competitions import registry
from flows.watching.board import Board, board
from flows.watching.event_log import AttemptLog, EventLog

SERVER = "for the store (connection to <Pool object at 0x{address:x}> refused); giving up in {left}"
LEASE = "for another process (prepare on host, pid 7)"
REPORTS = [
    ("digits", "queued", ""),
    ("digits", "waiting", ""),
    *(("digits", "waiting", SERVER.format(address=left * 4711, left=f"{left} min")) for left in (60, 59, 58)),
    ("digits", "waiting", SERVER.format(address=1, left="40 s")),
    ("digits", "waiting", LEASE),
    *(("digits", "waiting", f"{LEASE}, for {minutes} min") for minutes in (1, 2)),
    ("digits", "waiting", SERVER.format(address=2, left="30 s")),
    ("digits", "download", "kaggle"),
    ("digits", "download", "3 of 9 MB"),
    ("digits", "download", "waiting 4 s: HTTP 503"),
    ("digits", "download", "4 of 9 MB"),
    ("digits", "download", "waiting 8 s: HTTP 503"),
    ("digits", "download", "waiting 8 s: HTTP 429"),
    ("digits", "waiting", LEASE),  # another wait than the one before
]
WORTH = [0, 1, 2, 6, 10, 12, 15, 16]
"""Those that are printed."""


def test_the_reason_of_a_wait_is_printed_once(capfd: pytest.CaptureFixture[str]) -> None:
    with board("prepare"):
        for each in REPORTS:
            report(*each)
    told = capfd.readouterr().err.splitlines()
    assert told == [f"{row}: {state} {detail}".rstrip() for row, state, detail in map(REPORTS.__getitem__, WORTH)]


@pytest.mark.parametrize("kind", [EventLog, AttemptLog])
def test_so_does_the_log_of_a_flow(kind: type[EventLog], caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("story")
    event_log = AttemptLog("digits", log) if kind is AttemptLog else EventLog(log)
    with caplog.at_level("INFO", "story"):
        for each in REPORTS:
            event_log.log(Event(*each))
    told = [record.getMessage() for record in caplog.records]
    shown = [each for each in map(REPORTS.__getitem__, WORTH) if each[1:] != ("waiting", "")]  # it will say for what
    assert told == [f"{row}: {state}: {detail}".removesuffix(": ") for row, state, detail in shown]


def test_a_wait_that_is_over_is_told_and_another_one_is_another(capfd: pytest.CaptureFixture[str]) -> None:
    from common.progress import waits

    with board("run"):
        for _ in range(2):
            with waits("Prefect") as waiting:
                waiting("for the Prefect server (refused); giving up in 60 min")
    told = capfd.readouterr().err.splitlines()
    assert told == 2 * ["Prefect: waiting for the Prefect server (refused); giving up in 60 min", "Prefect: goes on"]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_in_a_narrow_terminal_names_states_and_times_stay(width: int) -> None:
    table = Board("Running")
    longest = max(registry.list("all"), key=len)
    for seed in range(12):
        table.take(Event(f"{longest}/{seed}", "waiting", "for another process (prepare on a-long-name, pid 7)"))
    table.take(Event(f"{longest}/12", "download", "kaggle", 30_000_000, 90_000_000))
    table.take(Event("digits/0", "graded", "0.953, gold medal, above the median"))
    shown = io.StringIO()
    Console(width=width, file=shown, force_terminal=True, color_system=None).print(table)
    lines = shown.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) == 15, "a title, and one line for each row"
    for seed in range(12):
        assert any(re.search(rf"/{seed} +waiting +\d+ s", line) for line in lines), lines
    assert any(re.search("/12 +download", line) for line in lines)
    assert any(line.startswith("digits/0") and "graded" in line for line in lines)


def test_a_dumb_terminal_gets_lines(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as the shell of an editor: it can neither move its cursor nor show colours."""
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with board("prepare"):
        report("digits", "download", "kaggle")
    assert capfd.readouterr().err == "digits: download kaggle\n"
