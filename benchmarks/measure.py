"""Measuring wall time, CPU time, and the peak memory of a whole process tree."""

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

_MIN_INTERVAL_SECONDS = 0.1  # between two samples


class DifferentResult(Exception):
    """Our implementation and the baseline have different results, so their times cannot be compared."""


@dataclass(frozen=True)
class Sample:
    """One measured run: seconds of wall clock, seconds of CPU of the tree, peak memory of the tree in MB."""

    seconds: float
    cpu: float
    peak_mb: float
    value: Any = None


@dataclass(frozen=True)
class Case:
    """The result of a case. `ratio` is baseline / ours, or seconds for a case without a baseline."""

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
        """The result in one machine-readable line."""
        return f"bench {self.name} ratio={self.ratio:.2f} target={self.target:g} peak_mb={self.ours.peak_mb:.0f}"

    @property
    def details(self) -> str:
        """The seconds of our implementation and of the baseline, as text."""
        text = f"      {self.about}: {self.ours.seconds:.2f} s (CPU {self.ours.cpu:.2f} s)"
        if self.baseline:
            text += f", baseline {self.baseline.seconds:.2f} s (CPU {self.baseline.cpu:.2f} s)"
        return text


def measure(work: Callable[[], Any]) -> Sample:
    """Run `work` once. Peak memory is not measured, because counting pages takes time; see `peak`."""
    os.sync()  # otherwise the run would also pay for writing the page cache of an earlier run to disk
    cpu_before, start = _cpu(), time.perf_counter()
    value = work()
    seconds, cpu = time.perf_counter() - start, _cpu() - cpu_before
    return Sample(seconds, cpu, 0.0, value)


def peak(work: Callable[[], Any]) -> float:
    """The peak memory of the process tree while `work` runs, in MB, sampled by a process that does not count itself."""
    command = [sys.executable, __file__, str(os.getpid())]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as sampler:
        assert sampler.stdout is not None
        sampler.stdout.readline()  # wait until it is ready
        work()
        peak_bytes, _ = sampler.communicate()
    return float(peak_bytes) / 1e6


def quickest(samples: list[Sample]) -> Sample:
    """The quickest of several runs: other load on the machine can only add time."""
    return min(samples, key=lambda sample: sample.seconds)


def best(work: Callable[[], Any], times: int) -> Sample:
    """The quickest of several runs, after an untimed run that samples memory and imports all modules."""
    peak_mb = peak(work)
    return replace(quickest([measure(work) for _ in range(times)]), peak_mb=peak_mb)


def compare(ours: Callable[[], Any], baseline: Callable[[], Any], times: int) -> tuple[Sample, Sample]:
    """The quickest of `times` runs of each, in turns, so that other load on the machine affects both.

    They follow an untimed run of `ours` that samples memory and imports all modules.
    """
    peak_mb = peak(ours)
    pairs = [(measure(baseline), measure(ours)) for _ in range(times)]
    our_sample, baseline_sample = (quickest([pair[which] for pair in pairs]) for which in (1, 0))
    return replace(our_sample, peak_mb=peak_mb), baseline_sample


def _cpu() -> float:
    """CPU seconds of this process, its living children, and those that have ended."""
    total = 0.0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            total += sum(process.cpu_times()[:4])
    return total


def _memory(process: psutil.Process) -> int:
    try:
        memory_info = process.memory_full_info()
    except psutil.Error:
        return 0
    return int(getattr(memory_info, "pss", None) or memory_info.uss)  # shared pages are counted once


def _sample(pid: int) -> None:
    """Print the highest memory of the tree below `pid` until standard input is closed."""
    import select

    tree = psutil.Process(pid)
    peak = 0
    print("ready", flush=True)
    ended = False
    while not ended:
        start = time.perf_counter()
        processes = [process for process in tree.children(recursive=True) if process.pid != os.getpid()]
        peak = max(peak, sum(map(_memory, [tree, *processes])))
        # Counting the pages of large processes occupies a core and delays allocations in them.
        pause = max(_MIN_INTERVAL_SECONDS, 10 * (time.perf_counter() - start))
        ended = bool(select.select([sys.stdin], [], [], pause)[0])
    print(peak)


if __name__ == "__main__":
    _sample(int(sys.argv[1]))
