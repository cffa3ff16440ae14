"""mlebench logs."""

from __future__ import annotations

import codecs
import time
from pathlib import Path

import click

from common.errors import UserError
from common.processes import start_time
from flows.commands.ls import readable
from flows.commands.options import StoreOptions, takes
from flows.commands.show import run_folder, unknown_run
from sandbox.supervision import control
from sandbox.supervision.follow import Follower
from storage.runs.folders import StoredRun
from storage.store import Store

_LOOK_SECONDS = 0.25
_CHUNK = 1 << 20


@click.command("logs")
@click.argument("run", metavar="RUN")
@click.option("-f", "--follow", is_flag=True, help="Follow a run in progress until it ends.")
@takes(storage=StoreOptions)
def command(run: str, follow: bool, storage: StoreOptions) -> None:
    """Print the log of a run's agent; RUN is GROUP/COMPETITION/SEED.

    The log of a finished run is read from the store. The log of a run in progress is on the machine where the agent
    runs, below MLEBENCH_SCRATCH: use this command there.
    """
    from common.settings import get_settings

    place = readable(storage.open())
    folder = run_folder(place, run)
    live = live_run(get_settings().scratch, run.strip("/").replace("/", "-"))
    if live is not None:
        _print_live(live, follow)
    elif (record := folder.read_run()) is not None:
        _print_stored(place, f"{StoredRun(folder, record).source}/logs/agent.log", run)
    else:
        raise unknown_run(place, folder)


def live_run(scratch: Path, run_id: str) -> control.Layout | None:
    """The run on this machine that has not ended yet: the latest one if runs of several stores have the same id."""
    found = []
    for path in (scratch / "runs").glob("*/control/task.json"):
        layout = control.Layout(path.parents[1])
        task = control.read(path, control.Task)
        if task is not None and task.run_id == run_id and not _ended(layout):
            found.append((path.stat().st_mtime, layout))
    return max(found, key=lambda each: each[0])[1] if found else None


def _ended(layout: control.Layout) -> bool:
    """Whether nothing more will be logged: the outcome is written, the run is gone, or its supervisor has died."""
    if layout.outcome.exists() or not layout.control.exists():
        return True
    supervisor = control.read(layout.supervisor, control.Supervisor)
    return supervisor is not None and start_time(supervisor.pid) != supervisor.start_time


def _print_live(layout: control.Layout, follow: bool) -> None:
    follower = Follower(layout.log, 0, click.echo)
    try:
        while True:
            # Checked before reading, so that everything that was logged before the end is read.
            over = not follow or _ended(layout)
            follower.forward(last=over)
            if over:
                return
            time.sleep(_LOOK_SECONDS)  # polling, because there is no portable event for writes by another process
    finally:
        follower.close()


def _print_stored(store: Store, url: str, run: str) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    try:
        with store.top.fs.open(store.top.path(store.relative(url)), "rb") as file:
            while chunk := file.read(_CHUNK):
                click.echo(decoder.decode(chunk), nl=False)
    except FileNotFoundError as error:
        raise UserError(f"run {run} left no log at {url}") from error
