"""Running a flow from a terminal: the live board, interrupts that stop agents, and the table of outcomes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from common.processes import start_time
from flows.commands.answers import answer, say
from flows.commands.stopping import STOPPED, interruptible, keep_server_from_interrupts

if TYPE_CHECKING:
    from flows.watching.outcome import Outcome

_STARTED_BY = "MLEBENCH_STARTED_BY"


def run_flow(title: str, flow: Callable[[], Any], leaves_agents: bool = False, go_on: str = STOPPED) -> int:
    """Run `flow` with the live board and print the outcomes; returns the exit code.

    Ctrl-C ends the agents of this process, unless the flow leaves them alone because they run in a work pool. `go_on`
    is the line that says how to go on then, if the flow does not end by itself.
    """
    end_orphaned_servers()
    keep_server_from_interrupts()
    from flows.watching.board import board
    from flows.watching.outcome import PartlyFailed

    with contextlib.nullcontext() if leaves_agents else interruptible(go_on):
        try:
            with board(title):
                outcomes = flow()
        except PartlyFailed as error:
            outcomes = error.outcomes
    return tell(outcomes)


def tell(outcomes: Sequence[Outcome]) -> int:
    """Print the outcomes and how many there are of each result; returns the exit code, 1 if one failed."""
    counts = {result: sum(each.result == result for each in outcomes) for result in ("done", "reused", "failed")}
    show_outcomes(outcomes)
    say(", ".join(f"{count} {result}" for result, count in counts.items() if count) or "nothing to do")
    return 1 if counts["failed"] else 0


def show_outcomes(outcomes: Sequence[Outcome]) -> None:
    """Print the outcomes, failures last: in a terminal those that say more than that it is done, elsewhere all."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    styles = {"done": "green", "reused": "cyan", "failed": "bold red"}
    ordered = sorted(outcomes, key=lambda each: list(styles).index(each.result))
    if answer([{"kind": "outcome", **asdict(each)} for each in ordered]):
        return
    console = Console(highlight=False)
    if not console.is_terminal:
        for each in ordered:
            click.echo(f"  {each.result:7} {each.what}{': ' if each.message else ''}{each.message}")
        return
    table = Table(box=None, show_header=False, padding=(0, 1))
    for each in (each for each in ordered if each.message or each.result == "failed"):
        table.add_row(Text(each.result, styles[each.result]), each.what, Text(each.message, overflow="fold"))
    if table.row_count:
        console.print(table)


def end_orphaned_servers() -> None:
    """End temporary Prefect servers whose parent was killed. Otherwise they run forever and share one database.

    In a container, the parent of a server that is in use can be process 1, which inherits orphans, too. So the servers
    that this process starts are told who it is.
    """
    import psutil

    for process in psutil.process_iter(["ppid", "cmdline"]):
        if process.info["ppid"] != 1 or "prefect.server.api.server:create_app" not in (process.info["cmdline"] or ()):
            continue
        with contextlib.suppress(psutil.Error):
            environment = process.environ()
            if environment.get("PREFECT__SERVER_EPHEMERAL") == "1" and not _lives(environment.get(_STARTED_BY)):
                process.terminate()
    os.environ[_STARTED_BY] = f"{os.getpid()} {start_time(os.getpid())}"


def _lives(started_by: str | None) -> bool:
    """Whether the process that has started a server lives."""
    if started_by is None:  # by another version, or another program
        return start_time(1) is not None and "python" in Path("/proc/1/cmdline").read_text(errors="replace")
    pid, _, started = started_by.partition(" ")
    return str(start_time(int(pid))) == started
