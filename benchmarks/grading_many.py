"""Overhead of grading in worker processes: 1,000 submissions of a small competition. Run as a module."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.measure import Sample, measure, quickest
from competitions import registry
from competitions.scoring.reading import read_submission
from grading.workers import GradingPool
from storage.datasets import prepare

_ID = "diabetes"
_COUNT = 1000
_TIMES = 3


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        competition = registry.get(_ID)
        (work / "raw.zip").write_bytes(competition.bundle())
        prepare(_ID, work / "raw.zip", work / "prepared")
        sample = (work / "prepared" / competition.facts.files.sample_submission).read_bytes()
        paths = [work / f"{number}.csv" for number in range(_COUNT)]
        for path in paths:
            path.write_bytes(sample)
        answers = competition.answers(work / "prepared")
        competition.score(paths[0], answers)  # imports
        print(f"{_COUNT} submissions of {_ID}, {len(sample):,} bytes each; quickest of {_TIMES}")
        _show("reading only", lambda: [read_submission(path) for path in paths])
        inline = _show("reading and scoring in this process", lambda: [competition.score(p, answers) for p in paths])
        for workers in (1, 2):
            with GradingPool(competition, work / "prepared", workers=workers) as grader:
                start = _show(f"start of the grader, {workers} workers", partial(grader.grade, paths[0]), 1)
                pooled = _show(f"in worker processes, {workers} workers", partial(_grade_all, grader, paths))
            print(
                f"{'':40} CPU {pooled.cpu / inline.cpu:.1f} times that of this process; {start.cpu:.1f} s once to start"
            )


def _grade_all(grader: GradingPool, paths: list[Path]) -> None:
    for _ in grader.grade_all(paths):
        pass


def _show(label: str, function: Callable[[], object], times: int = _TIMES) -> Sample:
    sample = quickest([measure(function) for _ in range(times)])
    print(f"{label:40} {sample.seconds:6.2f} s  (CPU {sample.cpu:.2f} s)")
    return sample


if __name__ == "__main__":
    main()
