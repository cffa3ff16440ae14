"""What each grader of the catalog takes for 100,000 rows: `python -m benchmarks.catalog`.

The miniature of each competition is prepared, and the perfect or sample submission and the answers are repeated under
new ids until the submission has `--rows` rows. Groups other than ids (patients, images named in another column) grow
with them, so that graders which compare within groups do more than with real data. Where the repeated files are no
valid input, for example because ids name coordinates, the miniature itself is measured. Each grader runs once in a
process of its own: CPU seconds for 100,000 rows, peak memory, and memory for each byte of submission and answers. The
slowest ten are printed last. The exit code is 1 if one that was enlarged takes more than 2 s or 1 GB.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from competitions import registry
from competitions.competition import Competition

if TYPE_CHECKING:
    from tests.prepared import Prepared

SECONDS, MEMORY = 2.0, 1e9
_FEWEST = 10_000  # rows below which a time for 100,000 says little


class Cost(NamedTuple):
    """Rows of the submission, CPU seconds of grading it, peak memory and bytes of both files."""

    competition_id: str
    rows: int
    seconds: float
    memory: int
    size: int
    enlarged: bool

    @property
    def each(self) -> float:
        """CPU seconds for 100,000 rows."""
        return self.seconds / max(self.rows, 1) * 1e5

    def __str__(self) -> str:
        note = "" if self.enlarged else "  miniature"
        ratio = max(0, self.memory) / max(self.size, 1)
        return (
            f"{self.competition_id:60} {self.rows:8,} rows {self.seconds:7.2f} s {self.each:7.2f} s for 100,000 "
            f"{self.memory / 1e6:6.0f} MB {ratio:6.1f} B/B{note}"
        )


def cost(competition_id: str, root: Path, rows: int) -> Cost:
    """Grade an enlarged miniature, or the miniature where that is not possible. Call it in a new process."""
    from tests.prepared import PreparedCompetitions  # not part of the installed package

    subject = PreparedCompetitions(root)[competition_id]
    competition = subject.competition
    competition.load_grader()
    submission = _submission(subject)
    for enlarged in _enlarged(subject, submission, rows):
        try:
            return _measured(competition, *enlarged, enlarged=True)
        except Exception:  # the repeated ids may be anything to a grader
            continue
    return _measured(competition, submission, subject.path, enlarged=False)


def _submission(subject: Prepared) -> Path:
    """A valid submission, with a row for each answer if there is one."""
    files = subject.competition.facts.files
    for name in (files.gold_submission, files.sample_submission):
        path = subject.path / name
        try:
            subject.competition.score(path, subject.answers)
        except Exception:  # a sample with other columns than the answers
            continue
        return path
    valid = [name for name, want in subject.expected["scores"].items() if want["error"] is None]
    return max(map(subject.submission, valid), key=lambda path: path.stat().st_size)


def _measured(competition: Competition, submission: Path, prepared: Path, *, enlarged: bool) -> Cost:
    size = submission.stat().st_size + (prepared / competition.facts.files.answers).stat().st_size
    rows = submission.read_bytes().count(b"\n") - 1
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    competition.grade(submission, prepared)
    seconds = time.process_time() - start
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    return Cost(competition.id, rows, seconds, memory, size, enlarged)


def _enlarged(subject: Prepared, submission: Path, rows: int) -> Iterator[tuple[Path, Path]]:
    """Yield ways to repeat submission and answers: the submission, and a prepared directory with the answers."""
    answers = subject.path / subject.competition.facts.files.answers
    if answers.suffix != ".csv":
        return
    truth, own = (pd.read_csv(path, dtype=str, keep_default_na=False) for path in (answers, submission))
    how = subject.competition.facts.resampling
    names = [how.id] if how and how.id else [f"{name}" for name in own if name in truth and own[name].is_unique]
    times = max(1, rows // max(len(own), 1))
    if not names or names[0] not in own or names[0] not in truth or times == 1:
        return
    for rename in _renaming(truth[names[0]]):
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / answers.relative_to(subject.path)
            target.parent.mkdir(parents=True)
            _repeat(truth, names[0], times, rename).to_csv(target, index=False)
            _repeat(own, names[0], times, rename).to_csv(Path(folder) / "submission.csv", index=False)
            yield Path(folder) / "submission.csv", Path(folder)


def _renaming(ids: pd.Series) -> list[Callable[[pd.Series, int], pd.Series]]:
    if ids.str.fullmatch(r"\d{1,12}").all():
        step = int(ids.astype("int64").max()) + 1
        return [lambda column, number: (column.astype("int64") + number * step).astype(str)]
    return [lambda column, number: f"{number}x" + column, lambda column, number: column + f"x{number}"]


def _repeat(table: pd.DataFrame, name: str, times: int, rename: Callable[[pd.Series, int], pd.Series]) -> pd.DataFrame:
    parts = [table if not number else table.assign(**{name: rename(table[name], number)}) for number in range(times)]
    return pd.concat(parts, ignore_index=True)


def main() -> int:
    """Measure the graders; returns 1 if an enlarged one takes too long or too much."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.catalog", description=__doc__)
    parser.add_argument("competitions", nargs="*", metavar="ID")
    parser.add_argument("--rows", type=int, default=20_000)
    args = parser.parse_args()
    ids = args.competitions or registry.list(split="all") + registry.list(split="dev")
    found = []
    with tempfile.TemporaryDirectory(prefix="mlebench-catalog-") as folder:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as pool:
            for each in ids:
                found.append(pool.submit(cost, each, Path(folder), args.rows).result())
                print(found[-1], flush=True)
    large = [one for one in found if one.enlarged and one.rows >= min(_FEWEST, args.rows)]
    print(f"\n{len(large)} of {len(found)} enlarged; the slowest:")
    for one in sorted(large, key=lambda one: -one.each)[:10]:
        print(one)
    return 1 if any(one.each > SECONDS or one.memory > MEMORY for one in large) else 0


if __name__ == "__main__":
    sys.exit(main())
