"""The downloads of competitions whose source is `bundled`, made once a process: that takes as long as many a test."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from competitions import registry
from competitions.competition import Competition


def bundle(competition_id: str) -> bytes:
    """What `Competition.bundle` returns for this competition."""
    return _bundle(registry.get(competition_id).folder)


@cache
def _bundle(folder: Path) -> bytes:
    return Competition.load(folder).bundle()
