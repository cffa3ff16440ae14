"""The choice of attempts that a host takes from a work pool now, and their order. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from sandbox.host.placement import Host, Need, lacks

REATTACH_SECONDS = 300.0
"""Time for which an attempt is left to the host that has its agent. A host that is online takes it at its next poll."""


@dataclass(frozen=True)
class Candidate:
    """An attempt that waits."""

    id: UUID
    run: str
    """Name of its run, as the slots of a host have it."""
    need: Need
    waiting_seconds: float
    agent_at: str | None = None
    """The host on which its agent was last seen."""
    rank: int = 0
    """Rank of its priority; lower ranks come first."""


def chosen(
    me: Host, free_slots: int, online: Collection[str], candidates: Sequence[Candidate], runs_here: Collection[str]
) -> list[UUID]:
    """The attempts to take now, in this order.

    First those whose agents are on this host: they need no further slot. Then, only while slots are free, the others
    that this host can make, by priority, and of one priority as they were handed out. An attempt whose agent is on
    another host is left to that one, but not for long.

    Args:
        me: this host.
        free_slots: the number of its slots that no run has or waits for.
        online: names of the hosts of the pool that are online.
        candidates: the attempts that wait, oldest first.
        runs_here: names of the runs whose agents are on this host.
    """
    reattached = [candidate.id for candidate in candidates if candidate.run in runs_here]
    other_hosts = set(online) - {me.name}
    possible = [
        candidate
        for candidate in candidates
        if candidate.run not in runs_here
        and not lacks(me, candidate.need)
        and not (candidate.agent_at in other_hosts and candidate.waiting_seconds < REATTACH_SECONDS)
    ]
    possible.sort(key=lambda candidate: candidate.rank)  # stable
    return reattached + [candidate.id for candidate in possible[: max(0, free_slots)]]
