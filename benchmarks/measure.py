"""Measuring: wall and CPU time, and the peak memory of a whole process tree."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import psutil

_INTERVAL = 0.1  # seconds between two samples, at least


@dataclass(frozen=True)
class Sample:
    """One measured run: seconds of wall clock, seconds of CPU of the tree, peak memory of the tree in MB."""

    seconds: float
    cpu: float
    peak_mb: float
    value: Any = None


@dataclass(frozen=True)
class Case:
    """What a case found. `ratio` is baseline / ours, or seconds for the case that has a limit of seconds."""

    name: str
    about: str
    ratio: float
    target: float
    ours: Sample
    baseline: Sample | None = None
    bytes: int = 0
    files: int = 0

    @property
    def line(self) -> str:
        """The line of the contract."""
        return f"bench {self.name} ratio={self.ratio:.2f} target={self.target:g} peak_mb={self.ours.peak_mb:.0f}"

    @property
    def details(self) -> str:
        """Seconds of both ways, for people."""
        text = f"      {self.about}: {self.ours.seconds:.2f} s (CPU {self.ours.cpu:.2f} s)"
        if self.baseline:
            text += f", baseline {self.baseline.seconds:.2f} s (CPU {self.baseline.cpu:.2f} s)"
        return text


def measure(work: Callable[[], Any]) -> Sample:
    """Run `work` once. Memory is sampled by a process of its own, which does not count itself."""
    os.sync()  # nobody pays for what an earlier run left to be written to the disk
    command = [sys.executable, __file__, str(os.getpid())]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as sampler:
        assert sampler.stdout is not None
        sampler.stdout.readline()  # it is ready
        before, start = _cpu(sampler.pid), time.perf_counter()
        value = work()
        seconds, cpu = time.perf_counter() - start, _cpu(sampler.pid) - before
        peak, _ = sampler.communicate()
    return Sample(seconds, cpu, float(peak) / 1e6, value)


def quickest(samples: list[Sample]) -> Sample:
    """The quickest of several runs (whatever else the machine does can only add), with the highest peak of all."""
    first = min(samples, key=lambda sample: sample.seconds)
    return replace(first, peak_mb=max(sample.peak_mb for sample in samples))


def best(work: Callable[[], Any], times: int) -> Sample:
    """The quickest of several runs."""
    return quickest([measure(work) for _ in range(times)])


def compare(ours: Callable[[], Any], baseline: Callable[[], Any], times: int) -> tuple[Sample, Sample]:
    """The quickest of `times` runs of each, taken in turns, so that a disturbance of the machine meets both."""
    pairs = [(measure(baseline), measure(ours)) for _ in range(times)]
    return quickest([own for _, own in pairs]), quickest([theirs for theirs, _ in pairs])


def _cpu(sampler: int) -> float:
    """CPU seconds of this process, its living children, and those that have ended; not of the sampler."""
    total = 0.0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        if process.pid != sampler:
            with contextlib.suppress(psutil.Error):
                total += sum(process.cpu_times()[:4])
    return total


def _memory(process: psutil.Process) -> int:
    try:
        full = process.memory_full_info()
    except psutil.Error:
        return 0
    return int(getattr(full, "pss", None) or full.uss)  # shared pages are counted once


def _sample(pid: int) -> None:
    """Print the highest memory of the tree below `pid` until standard input is closed."""
    import select

    tree = psutil.Process(pid)
    peak = 0
    print("ready", flush=True)
    pause = _INTERVAL
    while not select.select([sys.stdin], [], [], pause)[0]:
        start = time.perf_counter()
        processes = [each for each in tree.children(recursive=True) if each.pid != os.getpid()]
        peak = max(peak, sum(map(_memory, [tree, *processes])))
        # Counting the pages of large processes takes a core, and holds up those that ask for memory meanwhile.
        pause = max(_INTERVAL, 10 * (time.perf_counter() - start))
    print(peak)


if __name__ == "__main__":
    _sample(int(sys.argv[1]))
