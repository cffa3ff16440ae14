"""Limits of a run's validation service."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.limits import GIB


@dataclass(frozen=True)
class ValidationLimits:
    """How many submissions an agent may send, and of what size."""

    calls: int = 2000
    calls_per_minute: int = 20
    submission_bytes: int = 2 * GIB
