"""When tasks are retried: only after transient errors."""

from __future__ import annotations

from typing import Any

from prefect.client.schemas.objects import State, TaskRun

from common.errors import UserError
from storage.remote import is_transient


def can_pass(_task: Any, _run: TaskRun, state: State[Any]) -> bool:
    """Whether a retry may help, as after errors of network and disk, but not after user errors and bugs."""
    try:
        state.result()
    except UserError:
        return False
    except Exception as error:
        return is_transient(error)
    return False
