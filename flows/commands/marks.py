"""Competitions with places that are marked with CHECK: named before they are prepared and run."""

from __future__ import annotations

from collections.abc import Iterable

import click

from common.units import counted
from competitions import registry
from competitions.marks import marked_places


def warn_of_marks(competition_ids: Iterable[str]) -> None:
    """Print a line for each competition of the user's own with marked places. The catalog has none."""
    for name in competition_ids:
        if registry.in_catalog(name):
            continue
        if marked := marked_places(registry.get(name).folder):
            click.echo(
                f"mlebench: {name} has {counted(len(marked), 'place')} marked with CHECK, not decided yet, so its data "
                f"and scores may be wrong; `mlebench check {name}` names them",
                err=True,
            )
