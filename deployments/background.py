"""Background processes that are recorded on disk, so that a later command can end exactly these.

A process is identified by its id and its start time, because ids are reused.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import psutil

from common.guard import listen

PATIENCE = 240.0  # seconds for a service to answer; a Prefect server on a busy machine takes over a minute
_GRACE_SECONDS = 30.0  # seconds between SIGTERM and SIGKILL, in which a worker stops its flow runs


class ServiceError(RuntimeError):
    """A service did not start; the message ends with the last lines of its log."""


class BackgroundProcesses:
    """The services of one state directory, with their logs <name>.log and their record processes.json."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._record = folder / "processes.json"

    def running(self) -> dict[str, psutil.Process]:
        """The running services, in the order of their start."""
        running_services = {}
        for name, (pid, start_time) in self._read().items():
            with contextlib.suppress(psutil.NoSuchProcess):
                process = psutil.Process(pid)
                if process.create_time() == start_time and _runs(process):
                    running_services[name] = process
        return running_services

    def start(
        self,
        name: str,
        command: Sequence[str],
        env: Mapping[str, str],
        ready: Callable[[], bool],
        listener: socket.socket | None = None,
    ) -> psutil.Process:
        """Start and record a service, and return once it is ready. Raises `ServiceError`.

        Args:
            name: of the service.
            command: that starts it.
            env: its environment, besides that of this process.
            ready: whether it is ready; called again and again.
            listener: a socket that it inherits, and that is closed here: if it ends, nobody listens.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        log = self.folder / f"{name}.log"
        with log.open("ab") as out:
            started = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                # Files in the current directory must not hide our packages.
                env={**os.environ, "PYTHONSAFEPATH": "1", **env},
                start_new_session=True,  # keep it running after Ctrl-C in the terminal
                pass_fds=[listener.fileno()] if listener else [],
            )
        if listener:
            listener.close()
        process = psutil.Process(started.pid)
        self._write({**self._read(), name: (process.pid, process.create_time())})
        began = time.monotonic()
        while True:
            waited = time.monotonic() - began
            if started.poll() is not None:
                raise ServiceError(f"{name} ended with {started.returncode}: {_last_lines(log)}")
            with contextlib.suppress(Exception):  # a service that is not ready yet can fail in any way
                if ready():
                    return process
            if waited > PATIENCE:
                raise ServiceError(f"{name} does not answer within {PATIENCE:.0f} s: {_last_lines(log)}")
            time.sleep(min(0.1 + waited / 10, 1.0))  # leave the processor to a service that is slow to start

    def stop(self, *names: str) -> list[str]:
        """End these services, or all, with their child processes, in reverse order; returns their names."""
        ended = []
        for name, process in reversed(list(self.running().items())):
            if names and name not in names:
                continue
            end(process)
            ended.append(name)
        remaining = {name: value for name, value in self._read().items() if names and name not in names}
        if remaining:
            self._write(remaining)
        else:
            self._record.unlink(missing_ok=True)
        return ended

    def _read(self) -> dict[str, tuple[int, float]]:
        try:
            return {name: (pid, start_time) for name, (pid, start_time) in json.loads(self._record.read_text()).items()}
        except FileNotFoundError:
            return {}

    def _write(self, record: Mapping[str, tuple[int, float]]) -> None:
        temporary = self._record.with_suffix(".new")
        temporary.write_text(json.dumps(record, indent=1, allow_nan=False))
        temporary.replace(self._record)


def end(process: psutil.Process, grace: float = _GRACE_SECONDS) -> None:
    """Send SIGTERM to a process, and SIGKILL to it and its children if they are still running after a while."""
    try:
        processes = [*process.children(recursive=True), process]
        process.terminate()
    except psutil.NoSuchProcess:
        return
    _wait([process], grace)
    with contextlib.suppress(psutil.NoSuchProcess):
        processes = [*process.children(recursive=True), *processes]
    # psutil compares start times: a signal never reaches a later process with the same id.
    alive = _wait(processes, 3)
    for survivor in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            survivor.kill()
    _wait(alive, grace)


def _wait(processes: Collection[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Wait until these processes have ended; returns those that still run after these seconds.

    `psutil.wait_procs` alone would also wait for those that have ended, but whose parent has not asked for their exit
    codes. A parent may never do so, for example if it is process 1 of a container.
    """
    give_up = time.monotonic() + seconds
    while True:
        _, running = psutil.wait_procs(set(processes), timeout=0)
        alive = [process for process in running if _runs(process)]
        if not alive or time.monotonic() > give_up:
            return alive
        time.sleep(0.02)


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def free_port() -> int:
    """A port of the loopback that is free now."""
    with listen() as probe:
        return int(probe.getsockname()[1])


def _last_lines(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return " | ".join(lines[-5:]) or "its log is empty"
