"""Competitions with places that are marked with CHECK: named before they are prepared and run."""

from __future__ import annotations

from collections.abc import Iterable

import click

from common.units import counted
from competitions import registry


def warn_of_marks(competition_ids: Iterable[str]) -> None:
    """Print a line for each competition with marked places."""
    for name in competition_ids:
        if marked := registry.open_marks(name):
            click.echo(
                f"mlebench: {name} has {counted(len(marked), 'place')} marked with CHECK, not decided yet, so its data "
                f"and scores may be wrong; `mlebench check {name}` names them",
                err=True,
            )
