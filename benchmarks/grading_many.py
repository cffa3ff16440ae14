"""1,000 submissions of a small competition: what isolation adds to reading and scoring them. Run as a module."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from competitions import registry
from grading.isolation import IsolatedGrader
from grading.tables import read_submission

_ID = "diabetes"
_COUNT = 1000


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        competition = registry.get(_ID)
        (work / "raw.zip").write_bytes(competition.bundle())
        competition.prepare(work / "raw.zip", work / "prepared")
        sample = (work / "prepared" / competition.facts.files.sample_submission).read_bytes()
        paths = [work / f"{number}.csv" for number in range(_COUNT)]
        for path in paths:
            path.write_bytes(sample)
        answers = competition.answers(work / "prepared")
        competition.score(paths[0], answers)  # imports
        print(f"{_COUNT} submissions of {_ID}, {len(sample):,} bytes each")
        _show("reading only", lambda: [read_submission(path) for path in paths])
        _show("reading and scoring in this process", lambda: [competition.score(path, answers) for path in paths])
        for workers in (1, 2):
            with IsolatedGrader(competition, work / "prepared", workers=workers) as grader:
                _show(f"start of the isolated grader ({workers} workers)", lambda grader=grader: grader.grade(paths[0]))
                _show(f"isolated, {workers} workers", lambda grader=grader: list(grader.grade_all(paths)))


def _show(what: str, function: Callable[[], object]) -> None:
    start = time.perf_counter()
    function()
    print(f"{what:40} {time.perf_counter() - start:6.2f} s")


if __name__ == "__main__":
    main()
