"""The one style of tables: a head in capitals, columns two spaces apart, no lines.

In a terminal, columns are fitted to its width, and cells may have colours. Elsewhere each row is one line, however long
it is, so that `grep`, `awk` and files get whole values.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence

import click

Cell = str | tuple[str, str]
"""A text, or a text and its style in a terminal, such as `bold red`."""


def show_table(
    head: Sequence[str], rows: Sequence[Sequence[Cell]], title: str = "", right: Collection[str] = ()
) -> None:
    """Print a table.

    Args:
        head: the names of the columns.
        rows: the cells of each row.
        title: a line above the table.
        right: the columns of numbers, which are aligned at the right.
    """
    cells = [[(cell, "") if isinstance(cell, str) else cell for cell in row] for row in rows]
    if title:
        click.echo(title)
    if sys.stdout.isatty():
        _show_fitted(head, cells, right)
        return
    lines = [list(head), *([text for text, _ in row] for row in cells)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        parts = [
            text.rjust(width) if name in right else text.ljust(width)
            for text, width, name in zip(line, widths, head, strict=True)
        ]
        click.echo("  ".join(parts).rstrip())


def _show_fitted(head: Sequence[str], rows: Sequence[Sequence[tuple[str, str]]], right: Collection[str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for name in head:
        table.add_column(
            Text(name), justify="right" if name in right else "left", no_wrap=name in right, overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(text, style) for text, style in row))
    Console(highlight=False).print(table)
