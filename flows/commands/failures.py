"""Failures in a loop over competitions or runs, which do not stop the rest."""

from __future__ import annotations

import click

from common.causes import cause_of, explain
from common.units import unnamed


class Failures:
    """Tells each failure at once on standard error, and a reason only once."""

    def __init__(self) -> None:
        self.count = 0
        self._reasons: set[str] = set()

    def tell(self, name: str, error: Exception) -> None:
        """Print what failed and why. Raises the error if it is a bug."""
        if cause_of(error).fault == "program":
            raise error
        reason = unnamed(name, explain(error))
        click.echo(f"mlebench: {name}: {'the same' if reason in self._reasons else reason}", err=True)
        self._reasons.add(reason)
        self.count += 1
