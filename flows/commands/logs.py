"""mlebench logs."""

from __future__ import annotations

import codecs
import time
from pathlib import Path

import click

from common.errors import UserError
from common.processes import start_time
from flows.commands.completion import RUNS
from flows.commands.options import StoreOptions, takes
from flows.commands.show import run_folder, unknown_run
from sandbox.supervision import control
from sandbox.supervision.follow import Follower
from storage.runs.folders import RunFolder, StoredRun
from storage.runs.live import LiveReader
from storage.runs.records import RunRecord
from tasks.wiring.in_progress import in_progress

_POLL_SECONDS = 0.25
_REMOTE_POLL_SECONDS = 2.0
_POLLS_PER_STATE_CHECK = 10  # a check whether anybody waits for the run takes several requests
_CHUNK_BYTES = 1 << 20


@click.command("logs")
@click.argument("run", metavar="RUN", shell_complete=RUNS)
@click.option("-f", "--follow", is_flag=True, help="Follow a run in progress until it ends.")
@takes(storage=StoreOptions)
def command(run: str, follow: bool, storage: StoreOptions) -> None:
    """Print the log of a run's agent; RUN is GROUP/COMPETITION/SEED.

    The log of a finished run is read from the store. So is that of a run in progress on another machine, which uploads
    what is added to it every few seconds, up to 64 MiB. Exit code 1 if nobody waits for the followed run any more.
    """
    from common.settings import get_settings

    store = storage.open()
    folder = run_folder(store, run)
    live = live_run(get_settings().scratch, run.strip("/").replace("/", "-"))
    if live is not None:
        _print_live(live, follow)
    else:
        _print_remote(folder, follow)


def _print_remote(folder: RunFolder, follow: bool) -> None:
    """Print the log of a finished run, or of one that is in progress on another machine."""
    reader, decoder = LiveReader(folder), codecs.getincrementaldecoder("utf-8")("replace")
    record_at_start = folder.read_run()
    first_bytes = reader.more()
    if record_at_start is not None and not first_bytes:
        return _print_stored(folder, record_at_start, 0)
    if not first_bytes and _state(folder) is None:
        raise unknown_run(folder.store, folder)
    click.echo(decoder.decode(first_bytes), nl=False)
    polls = 0
    while follow:
        record = folder.read_run()
        if record is not None and record != record_at_start:
            return _print_stored(folder, record, reader.of_last_try)
        click.echo(decoder.decode(reader.more()), nl=False)
        polls += 1
        if (
            polls % _POLLS_PER_STATE_CHECK == 0
            and _state(folder) in (None, "interrupted")
            and folder.read_run() == record_at_start
        ):
            raise UserError(f"run {folder.name} is interrupted: the command that started it continues it")
        time.sleep(_REMOTE_POLL_SECONDS)
    return None


def _state(folder: RunFolder) -> str | None:
    runs = (run for run in in_progress(folder.store, folder.run_group) if run.folder == folder)
    return next((run.state for run in runs), None)


def live_run(scratch: Path, run_id: str) -> control.Layout | None:
    """The run on this machine that has not ended yet: the latest one if runs of several stores have the same id."""
    started_layouts = []
    for path in (scratch / "runs").glob("*/control/task.json"):
        layout = control.Layout(path.parents[1])
        task = control.read(path, control.LaunchSpec)
        if task is not None and task.run_id == run_id and not _ended(layout):
            started_layouts.append((path.stat().st_mtime, layout))
    return max(started_layouts, key=lambda item: item[0])[1] if started_layouts else None


def _ended(layout: control.Layout) -> bool:
    """Whether nothing more will be logged: the outcome is written, the folder is removed, or the supervisor is dead."""
    if layout.outcome.exists() or not layout.control.exists():
        return True
    supervisor = control.read(layout.supervisor, control.Supervisor)
    return supervisor is not None and start_time(supervisor.pid) != supervisor.start_time


def _print_live(layout: control.Layout, follow: bool) -> None:
    follower = Follower(layout.log, 0, click.echo)
    try:
        while True:
            # The end is checked before reading, so that everything that was logged before it is read.
            has_ended = not follow or _ended(layout)
            follower.forward(last=has_ended)
            if has_ended:
                return
            time.sleep(_POLL_SECONDS)  # polling, because there is no portable event for writes by another process
    finally:
        follower.close()


def _print_stored(folder: RunFolder, record: RunRecord, offset: int) -> None:
    """Print the log of a finished run from `offset` bytes on."""
    store, url = folder.store, f"{StoredRun(folder, record).source}/logs/agent.log"
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    try:
        with store.top.fs.open(store.top.path(store.relative(url)), "rb") as file:
            file.seek(offset)
            while chunk := file.read(_CHUNK_BYTES):
                click.echo(decoder.decode(chunk), nl=False)
    except FileNotFoundError as error:
        raise UserError(f"run {folder.name} left no log at {url}") from error
