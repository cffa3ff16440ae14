"""Agents in Docker containers, one a run; see ``sandbox.docker.backend``. Importing this costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandbox.docker.runs import Orphan


def orphans() -> list[Orphan]:
    """Runs in containers that no orchestrator of this machine waits for. Raises `BackendError` without an engine."""
    from sandbox.docker import engine, runs

    return runs.orphans(engine.connect())


def end_orphans() -> list[Orphan]:
    """End them and remove their containers and networks; returns those. Raises `BackendError` without an engine."""
    from sandbox.docker import engine, runs

    return runs.end_orphans(engine.connect())
