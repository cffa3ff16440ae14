"""Running a flow from a terminal: live board, interrupts that stop what was started, the table at the end."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import click

from flows.commands.options import quiet_prefect


def run_flow(title: str, flow: Callable[[], Any]) -> int:
    """Run `flow` under the board and print what became of each piece of work; returns the exit code."""
    quiet_prefect()
    from flows.board import board
    from flows.outcome import PartlyFailed

    with _interruptible():
        try:
            with board(title):
                outcomes = flow()
        except PartlyFailed as error:
            outcomes = error.outcomes
    counts = {result: sum(each.result == result for each in outcomes) for result in ("done", "reused", "failed")}
    click.echo(", ".join(f"{count} {result}" for result, count in counts.items() if count) or "nothing to do")
    for each in outcomes:
        if each.result == "failed":
            click.echo(f"  {each.what}: {each.message}", err=True)
    return 1 if counts["failed"] else 0


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C first ends the agents, then the flow; a second one ends the process at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_signal: int, _frame: Any) -> None:
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
        click.echo("\nstopping ...", err=True)
        from tasks.backends import stop_all

        threading.Thread(target=stop_all, daemon=True).start()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
