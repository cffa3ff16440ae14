"""Arguments of Prefect's `@task`: which results are reused, and how tasks are tried again.

Prefect limits the number of tries, but here the limit is the time that a cause has lasted. Therefore tasks get more
tries than they can use, with pauses up to a minute, and the condition ends them: an hour (`MLEBENCH_PATIENCE`) after
the first failure in a row without progress. A try that failed only after a longer time than any request can take has
made progress: its finished work is kept, and the hour begins again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict
from uuid import UUID

from prefect.client.schemas.objects import State, TaskRun
from prefect.context import TaskRunContext
from prefect.logging import get_run_logger

from common import progress
from common.causes import cause_of, waiting_for
from common.settings import get_settings

CacheKey = Callable[[TaskRunContext, dict[str, Any]], str | None]

_MAX_RETRIES = 10_000
_MAX_UNANSWERED_SECONDS = 900.0
"""The longest time of a request without an answer: the store is asked nine times, with 70 s each and pauses of up to
20 s, and Kaggle eight times, with 60 s each and pauses of up to 90 s."""
_PAUSE_SECONDS = [1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0]  # the last one for all further tries


class RetryOptions(TypedDict):
    """The arguments of `@task` about retries."""

    retries: int
    retry_delay_seconds: list[float]
    retry_jitter_factor: float
    retry_condition_fn: Any


def retry_options() -> RetryOptions:
    """The arguments of `@task` for a task that is tried again after transient failures."""
    return RetryOptions(
        retries=_MAX_RETRIES,
        retry_delay_seconds=_PAUSE_SECONDS,
        retry_jitter_factor=0.5,
        retry_condition_fn=should_retry,
    )


@dataclass
class _Outage:
    """Failures of a task run that followed each other: the time of the first and of the last one."""

    first: float
    last: float
    tries: int


# Global, because Prefect passes a condition nothing that lives as long as the task run. When there are many, the oldest
# ones are removed: their task runs have gone on to succeed.
_outages: dict[UUID, _Outage] = {}
_lock = threading.Lock()


def should_retry(task: Any, run: TaskRun, state: State[Any]) -> bool:
    """Whether a task run is tried again: its cause is transient, and has not lasted longer than the settings say."""
    try:
        state.result()
    except Exception as error:
        seconds_left = _seconds_left(run.id, error, get_settings().patience, time.monotonic())
        if seconds_left <= 0:
            return False
        text = waiting_for(error, seconds_left)
        get_run_logger().warning("waiting %s", text)
        progress.report(_row(run), "waiting", text)
        return True
    return False


def _seconds_left(run: UUID, error: Exception, patience: float, now: float) -> float:
    """The time for which the task run may still be tried again; 0 or less if it may not."""
    with _lock:
        outage = _outages.pop(run, None)
        if not cause_of(error).passes:
            return 0.0
        if outage is None or now - outage.last > _MAX_UNANSWERED_SECONDS + _pause_after(outage.tries):
            outage = _Outage(now, now, 0)
        seconds_left = outage.first + patience - now
        if seconds_left > 0:
            while len(_outages) > 1000:
                del _outages[min(_outages, key=lambda other: _outages[other].last)]
            _outages[run] = _Outage(outage.first, now, outage.tries + 1)
        return seconds_left


def _pause_after(tries: int) -> float:
    """The longest pause before the try that follows `tries` failures, with jitter."""
    return 1.5 * _PAUSE_SECONDS[min(max(tries - 1, 0), len(_PAUSE_SECONDS) - 1)]


def _row(run: TaskRun) -> str:
    """The row of the board for a task run. The name of a task run is a verb and the row."""
    return run.name.split(" ", 1)[-1].split(" on ")[-1]


def while_stored(content_key: Callable[..., str | None]) -> CacheKey:
    """The cache key of a task.

    Args:
        content_key: called with the parameters of the task by name; returns the content key of the task's result if the
            store already contains that, or None if the task has to run.
    """

    def cache_key(context: TaskRunContext, parameters: dict[str, Any]) -> str | None:
        key = content_key(**parameters)
        return f"{context.task.name}-{key}" if key is not None else None

    return cache_key
