"""Tasks of the original benchmark."""

from __future__ import annotations


def get_task_info(task: str) -> tuple[str, str]:
    """Name of the folder and problem of a task of the original benchmark."""
    raise ValueError(f"task {task} not supported in benchmarks")
