"""What agents report of their own candidates is read whatever it contains, and AIDE's journal likewise."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.runs.folders import RunFolder
from storage.runs.own_validations import FILE, LINES, read_own_validations
from storage.runs.records import OwnValidationRecord, RunRecord
from tests.stores import Store

STARTED = datetime(2026, 1, 1, tzinfo=UTC)


def read(store: Store, content: str | bytes, agent: str = "mine", path: str = FILE) -> list[OwnValidationRecord]:
    folder = RunFolder(store, "g", "diabetes", 0)
    run = RunRecord(
        run_group="g", run_id="r", competition_id="diabetes", seed=0, agent=agent, edition="v1", started_at=STARTED
    )
    store.write(f"{folder.url}/{path}", content if isinstance(content, bytes) else content.encode())
    return read_own_validations(store, folder, run)


def line(**fields: Any) -> str:
    return json.dumps(fields) + "\n"


def test_candidates_in_the_order_of_time(store: Store) -> None:
    at = STARTED.timestamp()
    first, second = read(
        store,
        line(score=0.5, time=at + 90, name="b", submitted=False, more=1) + "\n" + line(score=1, at_seconds=30),
    )
    assert (first.at_seconds, first.own_score, first.submitted, first.name) == (30, 1, True, None)
    assert (second.at_seconds, second.own_score, second.submitted, second.name) == (90, 0.5, False, "b")


@pytest.mark.parametrize(
    "bad",
    [
        line(score=float("nan"), at_seconds=1),
        line(score=float("inf"), at_seconds=1),
        line(score="0.5", at_seconds=1),
        line(score=True, at_seconds=1),
        line(score=10**400, at_seconds=1),
        line(score=0.5),
        line(score=0.5, at_seconds=-1),
        line(score=0.5, time=0),
        "[1, 2]\n",
        '{"score": 0.5, "at_sec',
        "[" * 100_000 + "\n",
        "\0\0\0\n",
    ],
)
def test_what_is_no_candidate_is_ignored(store: Store, bad: str) -> None:
    assert [each.own_score for each in read(store, line(score=0.25, at_seconds=1) + bad)] == [0.25]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(content=st.one_of(st.binary(max_size=300), st.text(max_size=300).map(lambda text: text.encode())))
def test_no_content_raises(store: Store, content: bytes) -> None:
    read(store, content)
    read(store, content, "aide", "logs/run/journal.json")


def test_a_long_file_is_read_in_part(store: Store) -> None:
    assert len(read(store, line(score=1, at_seconds=1) * (LINES + 5))) == LINES


def test_without_a_file_there_are_none(store: Store) -> None:
    assert read(store, "", path="logs/agent.log") == []


def test_the_journal_of_aide(store: Store) -> None:
    """Of a metric of which less is better: a step is handed in if it is better than all before it."""
    steps = [(0.9, False), (None, True), (0.7, False), (0.8, False)]
    nodes = [
        {"step": n, "ctime": STARTED.timestamp() + 60 * n, "is_buggy": bad, "metric": {"value": v, "maximize": False}}
        for n, (v, bad) in enumerate(steps)
    ]
    journal = json.dumps({"nodes": nodes, "node2parent": {}})
    found = read(store, journal, "aide@gpt-4o", "logs/run/journal.json")
    assert [(each.at_seconds, each.own_score, each.submitted) for each in found] == [
        (0, 0.9, True),
        (120, 0.7, True),
        (180, 0.8, False),
    ]
    long = [{**node, "code": "x = 1\n" * 500_000} for node in nodes]
    assert len(read(store, json.dumps({"nodes": long}), "aide", "logs/run/journal.json")) == 3, (
        "longer than other files"
    )
    assert read(store, journal, "other", "logs/run/journal.json") == []
    assert len(read(store, line(score=1, at_seconds=1), "aide")) == 1, "its own file comes first"
