"""Flow runs of a group as people see them: states, hosts, and why one has ended."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import httpx
from prefect.exceptions import PrefectHTTPStatusError

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun

SERVER_ERRORS: tuple[type[Exception], ...] = (httpx.HTTPError, PrefectHTTPStatusError, RuntimeError)
"""Errors that a client of Prefect raises while the server is away."""
_ERROR_PREFIX = re.compile(r"^Flow run encountered an exception:? ?(?:[A-Za-z_.]+: )?")
_STATE_NAMES = {
    "SCHEDULED": "queued",
    "PENDING": "starting",
    "RUNNING": "running",
    "CANCELLING": "cancelling",
    "COMPLETED": "done",
    "CANCELLED": "cancelled",
    "CRASHED": "crashed",
    "FAILED": "failed",
    "PAUSED": "paused",
}


def shown_state(state: Any) -> str:
    """The state of a flow run on boards.

    >>> from prefect.states import AwaitingRetry, Running
    >>> shown_state(Running()), shown_state(AwaitingRetry())
    ('running', 'queued')
    """
    return _STATE_NAMES.get(state.type.value, state.type.value.lower())


def explanation(state: Any) -> str:
    """Why a flow run ended, in one line.

    >>> from prefect.states import Failed
    >>> explanation(Failed(message="Flow run encountered an exception: AgentError: no agent x"))
    'no agent x'
    """
    text = _ERROR_PREFIX.sub("", (state.message or "").strip()).splitlines()
    return text[0] if text else shown_state(state)


def host_of(run: FlowRun) -> str | None:
    """The host that runs a flow run, or has run it."""
    return next((tag.removeprefix("host:") for tag in run.tags if tag.startswith("host:")), None)


_AGENT_AT_TAG = "agent-at:"


def agent_at(tags: Iterable[str]) -> str | None:
    """The host on which the agent of an attempt was last seen, according to the tags of its flow run."""
    return next((tag.removeprefix(_AGENT_AT_TAG) for tag in tags if tag.startswith(_AGENT_AT_TAG)), None)


def tags_again(run: FlowRun) -> list[str]:
    """The tags of the flow run that follows a crashed one. One names the host on which its agent may still run."""
    host = host_of(run)
    return [*tags_of_no_host(run.tags), *([f"{_AGENT_AT_TAG}{host}"] if host else [])]


def tags_of_no_host(tags: Iterable[str]) -> list[str]:
    """The tags of a flow run without those that name a host."""
    return [tag for tag in tags if not tag.startswith(("host:", _AGENT_AT_TAG))]
