"""A Dask cluster as its users start it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parents[3]


class DaskProcesses:
    """A Dask scheduler and workers as processes of their own, each in a directory of its own."""

    def __init__(
        self,
        folder: Path,
        workers: int,
        env: dict[str, str] | None = None,
        root: Path = ROOT,
        options: str = "",
        scheduler_options: str = "",
    ) -> None:
        """`root` is the code of the workers, `options` are further ones of `dask worker`."""
        self.folder, self.count, self.env = folder, workers, env or {}
        self.root, self.options, self.scheduler_options = root, options.split(), scheduler_options.split()
        self.processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> tuple[str, list[subprocess.Popen[str]]]:
        try:
            return self._cluster(), self.processes
        except BaseException:
            self.__exit__()
            raise

    def _cluster(self) -> str:
        options = ["--port", "0", "--host", "127.0.0.1", "--no-dashboard", *self.scheduler_options]
        first = self._start("scheduler", "scheduler", *options)
        address = self._line(first, "Scheduler at:").split("Scheduler at:")[1].strip()
        for number in range(self.count):
            options = ["--nthreads", "1", "--no-dashboard", "--nanny", *self.options]
            self._start(f"worker-{number}", "worker", address, *options)
        from distributed import Client

        with Client(address, set_as_default=False, timeout=60) as client:
            client.wait_for_workers(self.count, timeout=120)
        return address

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[str]:
        place = self.folder / name
        place.mkdir()
        process = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:]],
            cwd=place,
            env={**os.environ, **self.env, "TMPDIR": str(place), "PYTHONPATH": str(self.root), "HOME": str(place)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE if name == "scheduler" else subprocess.DEVNULL,
            text=True,
        )
        self.processes.append(process)
        return process

    def _line(self, process: subprocess.Popen[str], wanted: str) -> str:
        assert process.stderr is not None
        for line in process.stderr:
            if wanted in line:
                return line
        raise AssertionError(f"no line with {wanted!r}")

    def __exit__(self, *_: object) -> None:
        for process in reversed(self.processes):
            with_children: list[Any] = [
                process,
                *(psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []),
            ]
            for each in with_children:
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.kill()
            process.wait()
            if process.stderr:
                process.stderr.close()
