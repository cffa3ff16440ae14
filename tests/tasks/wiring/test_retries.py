"""Tasks are tried again for an hour of what passes, and never for what does not."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from prefect import flow, task

from common import progress
from common.errors import UserError
from sandbox.docker.engine import EngineUnreachable
from storage.datasets.cluster import ClusterError
from storage.sources.kaggle.errors import Unreachable
from tasks.steps import (
    agent_run,
    aggregate,
    checksum,
    download,
    familiarity,
    grade,
    plagiarism,
    split,
    violations,
)
from tasks.wiring import prefect_tasks
from tasks.wiring.prefect_tasks import retry_options, should_retry


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The time that the retries see."""
    now = [1000.0]
    monkeypatch.setattr(prefect_tasks.time, "monotonic", lambda: now[0])
    yield now
    prefect_tasks._outages.clear()


def left(run: UUID, error: Exception, clock: list[float]) -> float:
    return prefect_tasks._seconds_left(run, error, 3600, clock[0])


def test_every_step_is_tried_again_by_the_table() -> None:
    for step in (download, split, checksum, agent_run, grade, aggregate, plagiarism, violations, familiarity):
        assert step.retry_condition_fn is should_retry, step.name


@pytest.mark.parametrize("error", [Unreachable("x"), ClusterError("x"), EngineUnreachable("x"), ConnectionResetError()])
def test_what_passes_is_tried_again_for_an_hour(clock: list[float], error: Exception) -> None:
    run = uuid4()
    tries = 0
    while left(run, error, clock) > 0:
        clock[0] += 60  # the longest pause, and a try that fails at once
        tries += 1
    assert clock[0] == 1000 + 3600
    assert tries == 60


def test_progress_begins_the_hour_again(clock: list[float]) -> None:
    run, error = uuid4(), ConnectionResetError()
    for _ in range(10):
        assert left(run, error, clock) == 3600, "each time it had worked for half an hour"
        clock[0] += 1800
    other = uuid4()
    assert left(other, error, clock) == 3600
    clock[0] += 100
    assert left(other, error, clock) == 3500, "a quick failure is still the same outage"


@pytest.mark.parametrize(("patience", "silence", "tries"), [(8, 30, 2), (8, 100, 2), (600, 790, 2), (3600, 790, 6)])
def test_tries_that_are_not_answered_are_no_progress(patience: float, silence: float, tries: int) -> None:
    """A server that accepts connections and never answers, in the time of a made-up clock."""
    run, now, made = uuid4(), 0.0, 0
    while True:
        now, made = now + silence, made + 1
        if prefect_tasks._seconds_left(run, ConnectionResetError(), patience, now) <= 0:
            break
        now += 1
        assert made < 99, "it never ends"
    assert made == tries


def test_a_task_is_tried_again_until_it_works_and_says_what_it_waits_for() -> None:
    tries, events = itertools.count(), list[progress.Event]()
    at_once: Any = {**retry_options(), "retry_delay_seconds": 0}

    @task(task_run_name="download digits", **at_once)
    def fetch() -> int:
        if (number := next(tries)) < 9:
            raise ConnectionResetError("reset")
        return number

    @flow
    def both() -> int:
        return fetch()

    with progress.listening(events.append):
        assert both() == 9, "more often than any fixed number of tries"
    assert events[0].row == "digits"
    assert events[0].detail.startswith("for the network (reset); giving up in")


@pytest.mark.parametrize("error", [UserError("do this"), OSError(22, "Invalid argument"), KeyError("x")])
def test_what_does_not_pass_is_tried_once(error: Exception) -> None:
    tries: list[Any] = []

    @task(**retry_options())
    def fails() -> None:
        tries.append(1)
        raise error

    @flow
    def one() -> None:
        fails()

    with pytest.raises(type(error)):
        one()
    assert len(tries) == 1
