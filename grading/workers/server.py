"""The process that keeps a competition's answers in memory, forks a worker per submission, and enforces deadlines.

It is started by `grading.workers.pool` and communicates by JSON lines on standard input and output. It has no threads,
so that forking is safe, and never reads a submission itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import json
import os
import selectors
import signal
import socket
import time
import traceback
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import plain_json
from common.concurrency import end_threads
from competitions import registry
from grading.workers.endings import Phase, further_ended, grader_error, was_killed, worker_ended
from grading.workers.limits import Bounds, resident_bytes
from grading.workers.worker import serve

_READ_BYTES = 1 << 16


@dataclass
class _Lines:
    """Splits chunks of bytes into complete lines."""

    rest: bytes = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        return lines


@dataclass
class _Worker:
    pid: int
    channel: socket.socket
    job: dict[str, Any]
    deadline: float
    resident: int
    """Bytes of memory that it was forked with."""
    lines: _Lines = field(default_factory=_Lines)
    phase: Phase = "reading"
    overdue: bool = False
    scored: dict[str, Any] | None = None
    """The verdict, while scores on parts of the test set are computed."""


class Server:
    """Grades up to `workers` submissions at a time, each in a process that shares the answers' memory."""

    def __init__(self, spec: dict[str, Any], requests: int, replies: int) -> None:
        self.competition = registry.load(Path(spec["folder"]))
        self.max_workers = spec["workers"]
        self.edition, self.bounds = spec["edition"], Bounds(**spec["bounds"])
        self.validating = bool(spec["validating"])
        self.requests, self.replies = requests, replies
        self.waiting: deque[dict[str, Any]] = deque()
        self.workers: list[_Worker] = []
        self.selector = selectors.DefaultSelector()
        self.lines = _Lines()
        self.competition.load_grader()
        self.answers = None if spec["prepared"] is None else self.competition.answers(Path(spec["prepared"]))
        end_threads()  # forking is not safe with threads
        gc.freeze()  # a collection would write to the memory shared with workers, and so copy it

    def run(self) -> None:
        """Serve until standard input is closed, then end all workers."""
        self.selector.register(self.requests, selectors.EVENT_READ, None)
        try:
            while self._step():
                pass
        finally:
            for worker in self.workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker.pid, signal.SIGKILL)
            for worker in self.workers:
                os.waitpid(worker.pid, 0)

    def _step(self) -> bool:
        while self.waiting and len(self.workers) < self.max_workers:
            job = self.waiting.popleft()
            try:
                self._fork(job)
            except OSError:  # a limit on processes
                if not self.workers:
                    raise
                self.waiting.appendleft(job)  # until another worker has ended
                break
        wait = min((worker.deadline for worker in self.workers), default=float("inf")) - time.monotonic()
        for key, _ in self.selector.select(None if wait == float("inf") else max(0.0, wait)):
            if key.data is None:
                chunk = os.read(self.requests, _READ_BYTES)
                if not chunk:
                    return False
                self.waiting += map(json.loads, self.lines.feed(chunk))
            else:
                self._receive(key.data)
        for worker in self.workers:
            if time.monotonic() >= worker.deadline:
                worker.overdue, worker.deadline = True, float("inf")
                os.kill(worker.pid, signal.SIGKILL)
                worker.channel.shutdown(socket.SHUT_RD)  # it is reaped there; a child of its own may keep the other end
        return True

    def _receive(self, worker: _Worker) -> None:
        try:
            chunk = worker.channel.recv(_READ_BYTES)
        except OSError:
            chunk = b""
        for line in worker.lines.feed(chunk):
            message = json.loads(line)
            if "verdict" in message and "phase" not in message:
                os.kill(worker.pid, signal.SIGKILL)  # what a grader left in it must not delay the next one
                _, peak = self._reap(worker)
                self._answer(worker, message["verdict"], peak)
                return
            reads = message["phase"] == "predictions"
            worker.deadline = time.monotonic() + (self.bounds.read_seconds if reads else self.bounds.grade_seconds)
            if message["phase"] == "further":  # the grade is known, even if the worker ends before parts are scored
                worker.scored = message["verdict"]
                worker.deadline += worker.job["further"]["seconds"]
            else:
                worker.phase = message["phase"]
        if not chunk:
            self._answer_for_ended(worker, *self._reap(worker))

    def _answer_for_ended(self, worker: _Worker, status: int, peak: int) -> None:
        """Answer for a worker that ended without a verdict."""
        if worker.scored is not None:
            self._answer(worker, {**worker.scored, "further": {"message": further_ended(worker.overdue)}}, peak)
        elif was_killed(worker.overdue, status):
            _write(self.replies, {"id": worker.job["id"], "killed": peak})
        else:
            verdict = worker_ended(worker.phase, worker.overdue, status, self.bounds)
            self._answer(worker, dataclasses.asdict(verdict), peak)

    def _answer(self, worker: _Worker, verdict: dict[str, Any], peak: int) -> None:
        _write(self.replies, {"id": worker.job["id"], "verdict": verdict, "peak": peak})

    def _reap(self, worker: _Worker) -> tuple[int, int]:
        """The wait status of the worker, and the most bytes of memory that it took besides what it was forked with."""
        self.selector.unregister(worker.channel)
        worker.channel.close()
        self.workers.remove(worker)
        _, status, usage = os.wait4(worker.pid, 0)
        return status, max(0, usage.ru_maxrss * 1024 - worker.resident)

    def _fork(self, job: dict[str, Any]) -> None:
        server_end, worker_end = socket.socketpair()
        resident = resident_bytes()
        try:
            pid = os.fork()
        except OSError:
            server_end.close()
            worker_end.close()
            raise
        if pid == 0:
            # The child must not keep the channels of other workers open, which have to close when those end.
            server_end.close()
            for running in self.workers:
                running.channel.close()
            os.close(self.requests)
            os.close(self.replies)
            serve(worker_end, job, self.competition, self.answers, self.edition, self.bounds, self.validating)
        worker_end.close()
        worker = _Worker(pid, server_end, job, time.monotonic() + self.bounds.read_seconds, resident)
        worker.phase = "truth" if "truth" in (job.get("further") or {}) else "reading"
        self.workers.append(worker)
        self.selector.register(server_end, selectors.EVENT_READ, worker)


def _write(descriptor: int, message: dict[str, Any]) -> None:
    rest = plain_json.dumps(message).encode() + b"\n"
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def main() -> None:
    """Serve the competition that the first line of standard input describes."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # an ignored signal is inherited, and then no child can be waited for
    requests, replies = os.dup(0), os.dup(1)
    os.dup2(2, 1)  # output of graders must not be mixed with the replies
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    spec = b""
    while not spec.endswith(b"\n"):  # byte by byte, because the server reads the following lines
        byte = os.read(requests, 1)
        if not byte:
            return
        spec += byte
    try:
        server = Server(json.loads(spec), requests, replies)
    except Exception as error:  # caused by the answers or the grader, never by a submission
        _write(replies, {"fatal": dataclasses.asdict(grader_error(error, traceback.format_exc()))})
        return
    with contextlib.suppress(BrokenPipeError):  # the client has ended
        server.run()


if __name__ == "__main__":
    main()
