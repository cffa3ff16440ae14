"""Agents in Docker containers, one a run; see ``sandbox.docker.backend``. Importing this costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandbox.docker.abandoned import Orphan


def orphans() -> list[Orphan]:
    """Runs in containers that no orchestrator waits for or has to come back for.

    Raises:
        BackendError: no engine answers.
    """
    from sandbox.docker import abandoned, engine

    return abandoned.orphans(engine.connect())


def end_orphans() -> list[Orphan]:
    """End them, collecting what they left for the same run's next start, and remove their containers and networks.

    Returns those. Raises `BackendError` where no engine answers.
    """
    from sandbox.docker import abandoned, engine

    return abandoned.end_orphans(engine.connect())
