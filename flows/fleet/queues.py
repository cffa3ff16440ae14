"""The queues of a fleet's work pool: one for each label and priority, and one for the flows that hand attempts out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from common.errors import UserError
from flows import which_server
from tasks.wiring.prefect_server import served

if TYPE_CHECKING:
    from sandbox.limits import Limits

Label = Literal["cpu", "gpu", "big"]
"""A host has labels for its resources, and an attempt has one for the resources that it needs."""
LABELS: tuple[Label, ...] = get_args(Label)
Priority = Literal["high", "normal", "low"]
"""The priority of a group's attempts. Each label has a queue for each priority."""
PRIORITIES: tuple[Priority, ...] = get_args(Priority)
FLOWS = "flows"
"""The queue of the flows that prepare, hand out and watch. They do not take the slots of agents."""
BIG_BYTES = 64 << 30
"""An agent that may use more memory than this goes to the hosts with the label `big`."""


def require_server(what: str = "a work pool needs") -> None:
    """Raise `UserError` unless a Prefect server is configured; the message begins with `what`."""
    if not served():
        profile = which_server.unused_profile()
        choice = f"set PREFECT_API_URL, or PREFECT_PROFILE={profile}" if profile else "set PREFECT_API_URL"
        raise UserError(f"{what} a Prefect server: {choice}, or start one with `make up`")


def label_for(limits: Limits) -> Label:
    """The label that hosts need for attempts of an agent with these limits."""
    if limits.gpus:
        return "gpu"
    return "big" if (limits.memory_bytes or 0) > BIG_BYTES else "cpu"


def queue_name(label: str, priority: Priority = "normal") -> str:
    """The queue of the attempts that need a label.

    >>> queue_name("gpu"), queue_name("gpu", "high")
    ('gpu', 'gpu-high')
    """
    return label if priority == "normal" else f"{label}-{priority}"


def rank_of(queue: str | None) -> int:
    """The rank of a queue's priority; lower ranks come first.

    >>> rank_of("cpu-high") < rank_of("cpu") < rank_of("gpu-low")
    True
    """
    priority = (queue or "").partition("-")[2]
    return PRIORITIES.index(priority) if priority in PRIORITIES else PRIORITIES.index("normal")


def deployment_name(pool: str, flow: str = "attempt") -> str:
    """The full name of the deployment of a flow in a pool."""
    return f"{flow}/{pool}"
