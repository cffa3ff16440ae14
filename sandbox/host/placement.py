"""Find the hosts that can take a run. These are functions of what the hosts advertise, and of the time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from common.units import duration, size


@dataclass(frozen=True)
class Need:
    """The requirements of a run."""

    backend: str = "process"
    gpus: int = 0
    cpus: int | None = None
    memory_bytes: int | None = None
    seconds: float = 0.0
    """The time that it needs on its host."""
    labels: frozenset[str] = frozenset()
    """Labels that the operator wants the host to have, such as ``big``."""


@dataclass(frozen=True)
class Host:
    """The facts that a host advertises."""

    name: str
    slots: int
    """Number of agents that run at the same time."""
    gpus: int = 0
    cpus: int = 1
    memory_bytes: int = 0
    labels: frozenset[str] = frozenset()
    backends: frozenset[str] = frozenset({"process", "docker"})
    leaves_at: float | None = None
    """Unix time at which its batch job leaves, if it has one that ends."""


def lacks(host: Host, need: Need) -> list[str]:
    """The requirements of the run that the host never meets; empty if it can take the run.

    >>> lacks(Host("a", slots=2, gpus=1), Need(gpus=4, labels=frozenset({"big"})))
    ['4 GPUs (it has 1)', 'the label big']
    """
    missing = []
    if host.slots < 1:
        missing.append("a slot")
    if need.gpus > host.gpus:
        missing.append(f"{need.gpus} GPUs (it has {host.gpus})")
    if (need.cpus or 0) > host.cpus:
        missing.append(f"{need.cpus} cores (it has {host.cpus})")
    if (need.memory_bytes or 0) > host.memory_bytes:
        missing.append(f"{size(need.memory_bytes or 0)} of memory (it has {size(host.memory_bytes)})")
    if host.leaves_at is not None and need.seconds > (left := max(host.leaves_at - time.time(), 0.0)):
        missing.append(f"{duration(need.seconds)} (its job leaves in {duration(round(left))})")
    missing += [f"the label {label}" for label in sorted(need.labels - host.labels)]
    if need.backend not in host.backends:
        missing.append(f"the {need.backend} backend")
    return missing


def unplaceable(hosts: Sequence[Host], need: Need) -> str | None:
    """Why none of the hosts could ever take the run, in one line; None if one could, now or later.

    >>> unplaceable([Host("a", slots=2), Host("b", slots=1, gpus=1)], Need(gpus=2))
    'no host can take it: the nearest, b, lacks 2 GPUs (it has 1)'
    >>> unplaceable([Host("a", slots=2, cpus=4)], Need(cpus=8))
    'no host can take it: the nearest, a, lacks 8 cores (it has 4); --max-memory and --max-cpus let it have less'
    >>> unplaceable([], Need())
    'no host can take it: there is no host'
    """
    if not hosts:
        return "no host can take it: there is no host"
    nearest = min(hosts, key=lambda host: (len(lacks(host, need)), -host.gpus, -host.memory_bytes, host.name))
    missing = lacks(nearest, need)
    if not missing:
        return None
    size_of_run = (need.memory_bytes or 0) > nearest.memory_bytes or (need.cpus or 0) > nearest.cpus
    hint = "; --max-memory and --max-cpus let it have less" if size_of_run else ""
    return f"no host can take it: the nearest, {nearest.name}, lacks {' and '.join(missing)}{hint}"
