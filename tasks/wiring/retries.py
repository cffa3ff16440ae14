"""Retries, the same for all tasks: only where a cause can pass."""

from __future__ import annotations

from typing import Any

from prefect.client.schemas.objects import State, TaskRun

from common.errors import UserError
from storage.remote import is_transient


def can_pass(_task: Any, _run: TaskRun, state: State[Any]) -> bool:
    """Whether trying again may help: errors of network and disk may pass, a user's errors and bugs do not."""
    try:
        state.result()
    except UserError:
        return False
    except Exception as error:
        return is_transient(error)
    return False
