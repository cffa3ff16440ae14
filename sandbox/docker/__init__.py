"""Agents in Docker containers, one container per run; see ``sandbox.docker.backend``. Cheap to import."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandbox.docker.abandoned import Orphan


def orphans() -> list[Orphan]:
    """Runs in containers that no orchestrator waits for; see `sandbox.docker.abandoned.orphans`.

    Raises:
        BackendError: no engine answers.
    """
    from sandbox.docker import abandoned, engine

    return abandoned.orphans(engine.connect())


def end_orphans() -> list[Orphan]:
    """End orphaned runs, harvest their files, and remove their containers; returns the runs.

    Raises:
        BackendError: no engine answers.
    """
    from sandbox.docker import abandoned, engine

    return abandoned.end_orphans(engine.connect())
