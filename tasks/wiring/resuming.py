"""Runs of agents that can resume: checkpoints while they run, and continuing from one on whichever host.

A checkpoint has the agent's files. The time, requests and money used until then are not read from these, which the
agent could change: time is counted from the start that the host has noted, requests and money from the journals of the
services, which are kept more often than checkpoints are made. The evidence, the log and the snapshots of all tries that
belong together are stored with the run.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import copy_context
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from common import plain_json, progress
from common.causes import explain
from common.settings import get_settings
from grading.feedback import public_scores
from sandbox.backend import Backend, RunHandle, RunSpec
from sandbox.services.run_services import JOURNALS, LOGS, RECORDS, take_over
from sandbox.supervision import control
from sandbox.world.checkpoint import CheckpointStopped, pack
from sandbox.world.files import remove_tree
from storage.lease import LeaseLost
from storage.runs.checkpoints import Checkpoint, Checkpoints
from tasks.wiring import feedback
from tasks.wiring.requests import Attempt
from tasks.wiring.run import HOME, ActiveRun, Resumed, join_logs

FOLDER, FACTS = "resumed", "checkpoint.json"
_JOURNAL_POLL_SECONDS = 10.0  # between two uploads of the journals
_MAX_TRANSCRIPT_BYTES = 256 << 20
_logger = logging.getLogger(__name__)


def find_resumed(attempt: Attempt, spec: RunSpec, runner: Backend, kept: Checkpoints) -> Resumed | None:
    """The checkpoint that the run continues from, with its files fetched; None if the run begins, or began, anew.

    Call it before the services are opened: they continue the counts of the checkpoint.
    """
    folder = spec.workdir.absolute() / FOLDER
    if spec.agent.resume is None:
        return None
    if runner.find(spec) != "new":
        content = _read(folder / FACTS)
        return None if content is None else Resumed(content, folder)
    for _ in range(3):  # another host, which has lost the run and does not know it, may replace its checkpoint
        remove_tree(folder)
        checkpoint = kept.newest(attempt.key)
        if checkpoint is None:
            return None
        folder.mkdir(parents=True)
        if kept.fetch(checkpoint, folder / HOME):
            kept.fetch_kept(checkpoint, folder, (*JOURNALS, *public_scores.KEPT, feedback.CONDITION))
            take_over(spec.workdir, folder, checkpoint.since)
            public_scores.take_over(spec.workdir / RECORDS, folder)
            feedback.take_over(spec.workdir / RECORDS, folder)
            draft = folder / f"{FACTS}.new"
            draft.write_text(plain_json.dumps(asdict(checkpoint)), "utf-8")
            draft.replace(folder / FACTS)
            return Resumed(checkpoint, folder)
    _logger.warning("the checkpoint of %s is incomplete: it begins anew", spec.run_id)
    remove_tree(folder)
    return None


def _read(path: Path) -> Checkpoint | None:
    with contextlib.suppress(OSError, ValueError, TypeError):
        return Checkpoint(**json.loads(path.read_text("utf-8")))
    return None


@contextlib.contextmanager
def checkpoints_of(run: ActiveRun, handle: RunHandle) -> Iterator[Callable[[], object]]:
    """Make checkpoints of a run that is in progress during the block, in a separate thread.

    Yields a function that makes a further one now, if the run has checkpoints.
    """
    interval_seconds = run.context.checkpoint_seconds
    if not interval_seconds:
        yield lambda: None
        return
    work = _Checkpointing(run, handle, interval_seconds)
    thread = threading.Thread(target=work.run, name=f"checkpoints of {run.spec.run_id}", daemon=True)
    thread.start()
    try:
        yield partial(work.make, checkpoint=True)
    finally:
        work.ended.set()
        thread.join()  # it checks the event at short intervals


class _Checkpointing:
    def __init__(self, run: ActiveRun, handle: RunHandle, interval_seconds: float) -> None:
        self.ended = threading.Event()
        self._run, self._every = run, interval_seconds
        self._layout = control.Layout(handle.workdir)
        self._kept = run.checkpoints
        self._number, self._uploaded = 0, dict[str, int]()
        self._said, self._context = "", copy_context()
        self._lock = threading.Lock()

    def run(self) -> None:
        """Work until the run has ended."""
        due = time.monotonic() + self._every
        while not self.ended.wait(max(0.05, min(_JOURNAL_POLL_SECONDS, due - time.monotonic()))):
            if not self.make(checkpoint=time.monotonic() >= due):
                return
            if time.monotonic() >= due:
                due = time.monotonic() + self._every

    def make(self, *, checkpoint: bool) -> bool:
        """Keep the journals, and make a checkpoint if one is due; returns whether others may follow."""
        with self._lock:
            try:
                self._keep_journals()
                if checkpoint:
                    self._checkpoint()
            except (CheckpointStopped, LeaseLost):
                return False
            except Exception as error:  # the store may be away; the run goes on
                self._say(f"no checkpoint: {explain(error)}")
            return True

    def _checkpoint(self) -> None:
        run, seconds = self._run, self._seconds()
        if seconds is None:
            return
        draft = self._layout.workdir / "checkpoint.tar"
        try:
            max_bytes = get_settings().checkpoint_size
            packed = pack(self._layout.home, run.spec.agent, draft, max_bytes, self.ended.is_set)
            self._keep_history(seconds)
            self._keep_journals()
            run.held.require_held()
            self._number += 1
            earlier = run.resumed.checkpoint if run.resumed else None
            facts = {
                "key": run.attempt.key,
                "seconds": seconds,
                "began_at": earlier.began_at if earlier else _started_at(self._layout),
                "since": run.services.since,
                "resumed": earlier.resumed + 1 if earlier else 0,
                "host": get_settings().host_name,
                "left_out": packed.left_out,
            }
            self._kept.save(run.held.generation, self._number, draft, facts)
        finally:
            draft.unlink(missing_ok=True)
        if packed.left_out:
            self._say(f"checkpoint without {packed.left_out:,} working files, which do not fit or cannot be stored")

    def _seconds(self) -> float | None:
        """How long the agent has run, in all tries; None if it is not known to run."""
        began = _started_at(self._layout)
        if not began or self._layout.outcome.exists():
            return None
        seconds_of_try = (datetime.now(UTC) - datetime.fromisoformat(began)).total_seconds()
        return max(seconds_of_try, 0.0) + (self._run.resumed.checkpoint.seconds if self._run.resumed else 0.0)

    def _keep_journals(self) -> None:
        for name, path in sorted(
            public_scores.kept(self._run.spec.workdir / RECORDS).items(), reverse=True
        ):  # files, then journal
            self._keep(name, path)
        for name in (*JOURNALS, feedback.CONDITION):
            self._keep(name, self._run.spec.workdir / RECORDS / name)

    def _keep_history(self, seconds: float) -> None:
        """Keep the log, the snapshots and the transcripts of the run until now."""
        resumed = self._run.resumed
        draft = self._layout.workdir / "history"
        remove_tree(draft)
        draft.mkdir()
        join_logs(resumed, self._layout.log, draft / "agent.log")
        self._keep("agent.log", draft / "agent.log")
        offset = resumed.checkpoint.seconds if resumed else 0.0
        for path in resumed.snapshots if resumed else ():
            self._keep(f"snapshots/{path.name}", path)
        for path in sorted(self._layout.snapshots.glob("*.csv")):
            with contextlib.suppress(FileNotFoundError):  # thinned out meanwhile
                self._keep(f"snapshots/{float(path.stem) + offset:.1f}.csv", path)
        transcripts = self._run.spec.workdir / RECORDS / LOGS[-1]
        if transcripts.is_file() and transcripts.stat().st_size <= _MAX_TRANSCRIPT_BYTES:
            self._keep(LOGS[-1], transcripts)
        remove_tree(draft)

    def _keep(self, name: str, path: Path) -> None:
        size = path.stat().st_size if path.is_file() else 0
        if self._uploaded.get(name, 0) != size:
            self._kept.keep(self._run.held.generation, name, path)
            self._uploaded[name] = size

    def _say(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self._context.copy().run(progress.report, self._run.attempt.name, "running", text, story=True)


def _started_at(layout: control.Layout) -> str:
    """The time when the supervisor or the container of a run was started; empty if that is not noted."""
    supervisor = control.read(layout.supervisor, control.Supervisor)
    if supervisor is not None:
        return supervisor.started_at
    started = control.read(layout.started, control.Started)
    return started.at if started is not None else ""
