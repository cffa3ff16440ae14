"""The process that keeps a competition's answers in memory, forks a worker per submission, and enforces deadlines.

It is started by `grading.workers.pool` and communicates by JSON lines on standard input and output. It has no threads,
so that forking is safe, and never reads a submission itself.

To fork a worker, and to free its memory in the end, takes the kernel several times as long as to score a small
submission. So the worker for the next submission is forked while this one is scored, and its verdict is passed on
before the worker that found it is gone.
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
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import plain_json
from common.concurrency import end_threads
from competitions.competition import Competition
from grading.workers.endings import Phase, grader_error, halves_ended, was_killed, worker_ended
from grading.workers.limits import Bounds, resident_bytes
from grading.workers.worker import serve

_CHUNK = 1 << 16
_ENDING_SECONDS = 0.1
"""Time after which it is seen whether workers that have said everything are gone."""
_LARGE = 64 << 20
"""Bytes of a worker's own memory, which are free before the next submission is scored if there are more."""


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
    resident: int
    """Bytes of memory that it was forked with."""
    lines: _Lines = field(default_factory=_Lines)
    job: dict[str, Any] | None = None
    phase: Phase = "reading"
    deadline: float = float("inf")
    begun: bool = False
    """Whether it has read its job."""
    overdue: bool = False
    scored: dict[str, Any] | None = None
    """The verdict, while scores on halves of the test set are computed."""


class Server:
    """Grades up to `workers` submissions at a time, each in a process that shares the answers' memory."""

    def __init__(self, spec: dict[str, Any], requests: int, replies: int) -> None:
        self.competition = Competition.load(Path(spec["folder"]))
        self.edition, self.bounds, self.most = spec["edition"], Bounds(**spec["bounds"]), spec["workers"]
        self.validating = bool(spec["validating"])
        self.requests, self.replies = requests, replies
        self.waiting: deque[dict[str, Any]] = deque()
        self.workers: list[_Worker] = []
        """Those that grade, and mostly one more, without a job."""
        self.ending: list[int] = []
        """Processes of workers that have said everything."""
        self.selector = selectors.DefaultSelector()
        self.lines = _Lines()
        self.competition.load_grader()
        kept = Path(spec["kept"]) if spec["kept"] else None
        self.answers = self.competition.answers(Path(spec["prepared"]), kept)
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
            self._wait_for([*self.ending, *(worker.pid for worker in self.workers)])

    def _step(self) -> bool:
        wait = min((w.deadline for w in self.workers), default=float("inf")) - time.monotonic()
        if self.ending:
            wait = min(wait, _ENDING_SECONDS)
        for key, _ in self.selector.select(None if wait == float("inf") else max(0.0, wait)):
            if key.data is None:
                chunk = os.read(self.requests, _CHUNK)
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
        assigned = False
        while self.waiting and sum(worker.job is not None for worker in self.workers) < self.most:
            self._assign(self._idle() or self._needed(), self.waiting.popleft())
            assigned = True
        if assigned and self._idle() is None:  # once for each: the kernel may have killed it for want of memory
            with contextlib.suppress(OSError):  # a limit on processes
                self._fork()
        self.ending = [pid for pid in self.ending if not os.waitpid(pid, os.WNOHANG)[0]]
        return True

    def _idle(self) -> _Worker | None:
        return next((worker for worker in self.workers if worker.job is None), None)

    def _needed(self) -> _Worker:
        """A new worker, when those that have said everything are gone, if they are what a limit on processes counts."""
        try:
            return self._fork()
        except OSError:
            if not self.ending:
                raise
        self._wait_for(self.ending)
        self.ending = []
        return self._fork()

    @staticmethod
    def _wait_for(pids: Iterable[int]) -> None:
        for pid in pids:
            os.waitpid(pid, 0)

    def _assign(self, worker: _Worker, job: dict[str, Any]) -> None:
        worker.job, worker.deadline = job, time.monotonic() + self.bounds.read_seconds
        with contextlib.suppress(OSError):  # a worker that has ended is reaped when its channel closes
            worker.channel.sendall(plain_json.dumps(job).encode() + b"\n")

    def _receive(self, worker: _Worker) -> None:
        try:
            chunk = worker.channel.recv(_CHUNK)
        except OSError:
            chunk = b""
        for line in worker.lines.feed(chunk):
            message = json.loads(line)
            if message.get("phase") == "halves":  # the grade is known, whatever happens to the rest
                worker.scored = message["verdict"]
                assert worker.job is not None
                worker.deadline = time.monotonic() + worker.job["halves"]["seconds"] + self.bounds.grade_seconds
            elif message.get("phase") == "reading":
                worker.begun = True
            elif "phase" in message:
                worker.phase, worker.deadline = message["phase"], time.monotonic() + self.bounds.grade_seconds
            else:
                peak = self._end(worker)
                self._answer(worker, message["verdict"], peak)
                return
        if not chunk:
            status, peak = self._reap(worker)
            if worker.job is not None:
                self._ended(worker, worker.job, status, peak)

    def _ended(self, worker: _Worker, job: dict[str, Any], status: int, peak: int) -> None:
        """Answer for a worker that ended without a verdict, or have another one do its job."""
        if not (worker.begun or worker.overdue or job.get("again")):
            self.waiting.appendleft({**job, "again": True})  # it ended before it read the job, so for another reason
        elif worker.scored is not None:
            self._answer(worker, {**worker.scored, "halves": {"message": halves_ended(worker.overdue)}})
        elif was_killed(worker.overdue, status):
            _write(self.replies, {"id": job["id"], "killed": peak})
        else:
            verdict = worker_ended(worker.phase, worker.overdue, status, self.bounds)
            self._answer(worker, dataclasses.asdict(verdict))

    def _answer(self, worker: _Worker, verdict: dict[str, Any], peak: int = 0) -> None:
        assert worker.job is not None
        _write(self.replies, {"id": worker.job["id"], "verdict": verdict, "peak": peak})

    def _end(self, worker: _Worker) -> int:
        """End a worker that has said everything. The most bytes of memory that it took, if the job asks for that."""
        assert worker.job is not None
        wait = worker.job.get("measured") or resident_bytes(worker.pid) - worker.resident > _LARGE
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker.pid, signal.SIGKILL)
        if wait:
            return self._reap(worker)[1]
        self._forget(worker)
        self.ending.append(worker.pid)
        return 0

    def _reap(self, worker: _Worker) -> tuple[int, int]:
        """The wait status of the worker, and the most bytes of memory that it took besides what it was forked with."""
        self._forget(worker)
        _, status, usage = os.wait4(worker.pid, 0)
        return status, max(0, usage.ru_maxrss * 1024 - worker.resident)

    def _forget(self, worker: _Worker) -> None:
        self.selector.unregister(worker.channel)
        worker.channel.close()
        self.workers.remove(worker)

    def _fork(self) -> _Worker:
        ours, theirs = socket.socketpair()
        resident = resident_bytes()
        try:
            pid = os.fork()
        except OSError:
            ours.close()
            theirs.close()
            raise
        if pid == 0:
            # The child must not keep the channels of other workers open, which have to close when those end.
            ours.close()
            for other in self.workers:
                other.channel.close()
            os.close(self.requests)
            os.close(self.replies)
            serve(theirs, self.competition, self.answers, self.edition, self.bounds, validating=self.validating)
        theirs.close()
        worker = _Worker(pid, ours, resident)
        self.workers.append(worker)
        self.selector.register(ours, selectors.EVENT_READ, worker)
        return worker


def _write(descriptor: int, message: dict[str, Any]) -> None:
    rest = plain_json.dumps(message).encode() + b"\n"
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def main() -> None:
    """Serve the competition that the first line of standard input describes."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # whoever started this may ignore it: nothing could be reaped then
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
