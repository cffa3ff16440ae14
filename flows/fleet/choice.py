"""Which of the attempts that wait in a work pool a host takes now, and in which order. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sandbox.host.placement import Host, Need, lacks, preferred

REATTACH_SECONDS = 300.0
"""How long an attempt is left to the host that has its agent. A host that is online takes it with its next look."""
PREFERENCE_SECONDS = 30.0
"""How long an attempt is left to a host that has its data and room for it: copying takes about as long."""


@dataclass(frozen=True)
class Candidate:
    """An attempt that waits."""

    id: UUID
    run: str
    """Name of its run, as those that look at the slots of a host know it."""
    need: Need
    waiting_seconds: float
    agent_at: str | None = None
    """The host on which its agent was last seen."""
    rank: int = 0
    """Of its priority; lower ranks come first."""


def chosen(me: Host, hosts: Sequence[Host], candidates: Sequence[Candidate], runs_here: frozenset[str]) -> list[UUID]:
    """The attempts to take now, in this order.

    First those whose agents are on this host: they need no further slot. Then by priority,
    and of one priority those whose data are here, then the others as they were handed out, which is competition by
    competition; only while slots are free. An attempt is
    left to the host that has its agent, or that has its data and room for it, but not for long.

    Args:
        me: this host.
        hosts: the hosts of the pool that are online.
        candidates: the attempts that wait, oldest first.
        runs_here: names of the runs whose agents are on this host.
    """
    found = [each.id for each in candidates if each.run in runs_here]
    others = {host.name: host for host in hosts if host.name != me.name}
    possible = [
        each
        for each in candidates
        if each.run not in runs_here
        and not lacks(me, each.need)
        and not (each.agent_at in others and each.waiting_seconds < REATTACH_SECONDS)
        and not _better_elsewhere(me, list(others.values()), each)
    ]
    possible.sort(key=lambda each: (each.rank, each.need.dataset not in me.datasets))  # stable
    return found + [each.id for each in possible[: max(0, me.free_slots)]]


def _better_elsewhere(me: Host, others: Sequence[Host], candidate: Candidate) -> bool:
    if candidate.need.dataset in me.datasets or candidate.waiting_seconds >= PREFERENCE_SECONDS:
        return False
    return preferred(others, candidate.need) is not None
