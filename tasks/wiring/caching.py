"""Cache keys of tasks: a cached result is reused only while the store contains the files that it stands for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prefect.context import TaskRunContext

CacheKey = Callable[[TaskRunContext, dict[str, Any]], str | None]


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
