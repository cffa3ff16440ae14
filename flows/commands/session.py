"""Running a flow from a terminal: the live board, interrupts that stop agents, and the table of outcomes."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from common.errors import Cancelled
from common.units import listed
from flows.commands.answers import answer, say
from flows.commands.stopping import INTERRUPTED, STOPPED, interruptible

if TYPE_CHECKING:
    from flows.watching.outcome import Outcome

_MAX_REPEATED = 40
"""Characters of a message that is printed for each outcome, even if it is the same."""
_STYLES = {"done": "green", "reused": "cyan", "unavailable": "yellow", "cancelled": "yellow", "failed": "red"}
"""The results in the order in which they are told."""


def run_flow(title: str, flow: Callable[[], Any], leaves_agents: bool = False, go_on: str = STOPPED) -> int:
    """Run `flow` with the live board and print the outcomes; returns the exit code.

    Ctrl-C ends the agents of this process, unless the flow leaves them alone because they run in a work pool. `go_on`
    is the line that says how to go on then, if the flow does not end by itself within seconds.
    """
    from flows import temporary_server, which_server

    if remark := which_server.remark():
        click.echo(remark, err=True)
    server = temporary_server.start()
    from tasks.wiring.prefect_server import require_server, share_certificates

    share_certificates()
    from flows.watching.board import board
    from flows.watching.outcome import PartlyFailed

    with interruptible(go_on, ends_agents=not leaves_agents):
        try:
            with board(title):
                if server is not None:
                    server.wait()
                else:
                    require_server()
                outcomes = flow()
        except PartlyFailed as error:
            outcomes = error.outcomes
        except Cancelled as error:
            click.echo(f"mlebench: {error}", err=True)
            return INTERRUPTED
    return tell(outcomes)


def tell(outcomes: Sequence[Outcome]) -> int:
    """Print the outcomes and how many there are of each result; returns the exit code."""
    counts = Counter[str](outcome.result for outcome in outcomes)
    show_outcomes(outcomes)
    say(", ".join(f"{counts[result]} {result}" for result in _STYLES if counts[result]) or "nothing to do")
    return exit_code(outcomes)


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """1 if anything failed, or nothing can be had; if anything was cancelled, that of an interrupted command."""
    results = {outcome.result for outcome in outcomes}
    return 1 if "failed" in results or results == {"unavailable"} else INTERRUPTED if "cancelled" in results else 0


def show_outcomes(outcomes: Sequence[Outcome]) -> None:
    """Print the outcomes, failures last, and a long reason of several failures once below them.

    In a terminal, finished ones without a message are left out.
    """
    ordered = sorted(outcomes, key=lambda outcome: list(_STYLES).index(outcome.result))
    if answer([{"kind": "outcome", **asdict(outcome)} for outcome in ordered]):
        return
    common = _common_reasons(ordered)
    width = max([7, *(len(outcome.result) for outcome in ordered)])
    for outcome in ordered:
        if sys.stdout.isatty() and not outcome.message and outcome.result not in ("cancelled", "failed"):
            continue
        reason = "" if not outcome.message or outcome.message in common else f": {outcome.message}"
        click.echo(f"  {click.style(f'{outcome.result:{width}}', fg=_STYLES[outcome.result])} {outcome.what}{reason}")
    for text, names in common.items():
        click.echo(f"  {listed(names)}: {text}")


def _common_reasons(outcomes: Sequence[Outcome]) -> dict[str, list[str]]:
    """The long messages that several outcomes have, with their names."""
    names: dict[str, list[str]] = {}
    for outcome in outcomes:
        names.setdefault(outcome.message, []).append(outcome.what)
    return {text: found for text, found in names.items() if len(found) > 1 and len(text) > _MAX_REPEATED}
