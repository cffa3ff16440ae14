"""Running a flow from a terminal: the live board, interrupts that stop agents, and the table of outcomes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from flows.commands.answers import answer, say
from flows.commands.stopping import STOPPED, interruptible

if TYPE_CHECKING:
    from flows.watching.outcome import Outcome


def run_flow(title: str, flow: Callable[[], Any], leaves_agents: bool = False, go_on: str = STOPPED) -> int:
    """Run `flow` with the live board and print the outcomes; returns the exit code.

    Ctrl-C ends the agents of this process, unless the flow leaves them alone because they run in a work pool. `go_on`
    is the line that says how to go on then, if the flow does not end by itself.
    """
    from flows import temporary_server

    server = temporary_server.start()
    from tasks.wiring.prefect_server import share_certificates

    share_certificates()
    from flows.watching.board import board
    from flows.watching.outcome import PartlyFailed

    with contextlib.nullcontext() if leaves_agents else interruptible(go_on):
        try:
            with board(title):
                if server is not None:
                    server.wait()
                outcomes = flow()
        except PartlyFailed as error:
            outcomes = error.outcomes
    return tell(outcomes)


def tell(outcomes: Sequence[Outcome]) -> int:
    """Print the outcomes and how many there are of each result; returns the exit code, 1 if one failed."""
    counts = {result: sum(outcome.result == result for outcome in outcomes) for result in ("done", "reused", "failed")}
    show_outcomes(outcomes)
    say(", ".join(f"{count} {result}" for result, count in counts.items() if count) or "nothing to do")
    return 1 if counts["failed"] else 0


def show_outcomes(outcomes: Sequence[Outcome]) -> None:
    """Print the outcomes, failures last. In a terminal, those without a message are left out unless they failed."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    styles = {"done": "green", "reused": "cyan", "failed": "bold red"}
    ordered = sorted(outcomes, key=lambda outcome: list(styles).index(outcome.result))
    if answer([{"kind": "outcome", **asdict(outcome)} for outcome in ordered]):
        return
    console = Console(highlight=False)
    if not console.is_terminal:
        for outcome in ordered:
            click.echo(f"  {outcome.result:7} {outcome.what}{': ' if outcome.message else ''}{outcome.message}")
        return
    table = Table(box=None, show_header=False, padding=(0, 1))
    for outcome in (outcome for outcome in ordered if outcome.message or outcome.result == "failed"):
        table.add_row(
            Text(outcome.result, styles[outcome.result]), outcome.what, Text(outcome.message, overflow="fold")
        )
    if table.row_count:
        console.print(table)
