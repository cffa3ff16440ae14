"""What preparing and grading each competition takes: `python -m benchmarks.catalog`.

Preparing: the miniature of the download is enlarged to `--megabytes`: its tables get more rows, and files that are
named after an id, or numbered, get copies under new ids (`benchmarks/enlarged.py`). Printed are rows and files, CPU
seconds for 100,000 of them, MB per second of CPU time, and memory for each byte of the unpacked download.

Grading: the perfect or sample submission and the answers are repeated under new ids until the submission has `--rows`
rows. Groups other than ids (patients, images named in another column) grow with them, so that graders which compare
within groups do more than with real data. Printed are CPU seconds for 100,000 rows, peak memory, and memory for each
byte of submission and answers. `--shape` writes the submission as agents do, too: in another order, with quotes around
all cells, with carriage returns, or with an index column in front, which not every grader allows.

Where what was enlarged is no valid input, for example because ids name coordinates, the miniature itself is measured.
Each competition is measured in a process of its own, after its modules were imported. The quickest of three gradings
counts, or of up to ten as long as they take longer than they may. The slowest ten are printed last. The exit code is 1
if a grader that was enlarged takes more than 1 GB, or more than 2 s for 100,000 rows and more than 4 times what Arrow
takes to parse both files and do nothing else.
"""

from __future__ import annotations

import argparse
import csv as standard_csv
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from pyarrow import csv

from benchmarks.enlarged import downloads, renamings, repeat
from benchmarks.folders import fresh
from competitions import registry
from competitions.competition import Competition
from competitions.editions import EDITIONS, Edition

if TYPE_CHECKING:
    from tests.prepared import Prepared

SECONDS, MEMORY = 2.0, 1e9
PARSING = 4.0  # times what parsing alone takes: both files are parsed, checked, aligned and compared
SHAPES: dict[str, Callable[[pd.DataFrame, Path], None]] = {
    "plain": lambda table, path: table.to_csv(path, index=False),
    "shuffled": lambda table, path: table.sample(frac=1, random_state=0).to_csv(path, index=False),
    "quoted": lambda table, path: table.to_csv(path, index=False, quoting=standard_csv.QUOTE_ALL),
    "crlf": lambda table, path: table.to_csv(path, index=False, lineterminator="\r\n"),
    "indexed": lambda table, path: table.to_csv(path),
}
_FEWEST = 10_000  # rows and files below which a time for 100,000 says little
_RUNS, _MOST_RUNS = 3, 10  # other work on the machine also takes from its caches, so that a few runs say little


@dataclass(frozen=True)
class Cost:
    """What preparing or grading a competition took."""

    competition_id: str
    entries: int
    """rows of the submission, or rows and files of the download"""
    size: int
    """bytes of the submission and the answers, or of the unpacked download"""
    seconds: float
    """CPU time"""
    memory: int
    """bytes by which the peak grew"""
    enlarged: bool
    parsing: float = 0.0
    """CPU seconds that Arrow takes to parse what is graded"""

    @property
    def each(self) -> float:
        """CPU seconds for 100,000 rows or files."""
        return self.seconds / max(self.entries, 1) * 1e5

    @property
    def large(self) -> bool:
        """Whether there is enough of it to tell a time for 100,000."""
        return self.enlarged and self.entries >= _FEWEST

    @property
    def too_much(self) -> bool:
        """Whether a grader needs more time or memory than it may."""
        slow = self.each > SECONDS and self.seconds > PARSING * self.parsing
        return self.large and (slow or self.memory > MEMORY)

    def __str__(self) -> str:
        note = "" if self.enlarged else "  miniature"
        parsing = f"  {self.seconds / self.parsing:4.1f} x parsing" if self.parsing else ""
        return (
            f"{self.competition_id:60} {self.entries:8,} {self.seconds:7.2f} s {self.each:7.2f} s for 100,000 "
            f"{self.size / max(self.seconds, 1e-9) / 1e6:7.1f} MB/s{parsing} {self.memory / 1e6:6.0f} MB "
            f"{max(0, self.memory) / max(self.size, 1):6.1f} B/B{note}"
        )


def preparing(competition_id: str, root: Path, edition: Edition, size: int) -> Cost:
    """Prepare an enlarged miniature, or the miniature where that is not possible. Call it in a new process."""
    from storage.datasets import prepare
    from tests.prepared import PreparedCompetitions  # not part of the installed package

    subject = PreparedCompetitions(root).get(competition_id, edition)
    folder = fresh(f"{competition_id}-", root)
    work = partial(prepare, competition_id, edition=edition, params=subject.params)
    work(subject.raw, folder / "once")  # imports what it needs
    for raw, found in downloads(subject.raw, folder / "raw.zip", size):
        before, start = _peak(), time.process_time()
        try:
            work(raw, fresh("out-", folder) / "out")
        except Exception:  # the repeated ids may be anything to it
            if raw == subject.raw:
                raise
            continue
        seconds, memory = time.process_time() - start, _peak() - before
        return Cost(competition_id, found.rows + found.files, found.size, seconds, memory, raw != subject.raw)
    raise AssertionError("the download itself is the last one")


def grading(competition_id: str, root: Path, edition: Edition, rows: int, shape: str = "plain") -> Cost:
    """Grade an enlarged miniature, or the miniature where that is not possible. Call it in a new process."""
    from tests.prepared import PreparedCompetitions

    subject = PreparedCompetitions(root).get(competition_id, edition)
    competition = subject.competition
    competition.load_grader()
    submission = _submission(subject)
    for enlarged in _enlarged(subject, submission, rows, root, shape):
        try:
            return _graded(competition, *enlarged, edition, enlarged=True)
        except Exception:  # the repeated ids may be anything to a grader
            continue
    return _graded(competition, submission, subject.path, edition, enlarged=False)


def _submission(subject: Prepared) -> Path:
    """A valid submission, with a row for each answer if there is one."""
    files = subject.competition.facts.files
    for name in (files.gold_submission, files.sample_submission):
        path = subject.path / name
        try:
            subject.competition.score(path, subject.answers, subject.edition)
        except Exception:  # a sample with other columns than the answers
            continue
        return path
    valid = [name for name, want in subject.expected["scores"].items() if want["error"] is None]
    return max(map(subject.submission, valid), key=lambda path: path.stat().st_size)


def _graded(competition: Competition, submission: Path, prepared: Path, edition: Edition, *, enlarged: bool) -> Cost:
    answers = prepared / competition.facts.files.answers
    size = submission.stat().st_size + answers.stat().st_size
    rows = submission.read_bytes().count(b"\n") - 1
    before = _peak()
    seconds = [_seconds(lambda: competition.score(submission, competition.answers(prepared), edition))]
    memory = _peak() - before
    while len(seconds) < (_MOST_RUNS if min(seconds) / max(rows, 1) * 1e5 > SECONDS else _RUNS):
        seconds.append(_seconds(lambda: competition.score(submission, competition.answers(prepared), edition)))
    parsing = min(_seconds(partial(_parse, (submission, answers))) for _ in range(_RUNS)) if enlarged else 0.0
    return Cost(competition.id, rows, size, min(seconds), memory, enlarged, parsing)


def _parse(paths: tuple[Path, ...]) -> None:
    for path in paths:
        csv.read_csv(path, csv.ReadOptions(use_threads=False), csv.ParseOptions(newlines_in_values=True))


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _enlarged(subject: Prepared, submission: Path, rows: int, root: Path, shape: str) -> Iterator[tuple[Path, Path]]:
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
    for rename in renamings(truth[names[0]]):
        folder = fresh(f"{subject.competition.id}-", root)
        target = folder / answers.relative_to(subject.path)
        target.parent.mkdir(parents=True)
        repeat(truth, names[:1], times, rename).to_csv(target, index=False)
        SHAPES[shape](repeat(own, names[:1], times, rename), folder / "submission.csv")
        yield folder / "submission.csv", folder


def main() -> int:
    """Measure the catalog; returns 1 if a grader that was enlarged takes too long or too much."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.catalog", description=__doc__)
    parser.add_argument("competitions", nargs="*", metavar="ID")
    parser.add_argument("--part", choices=("prepare", "grade"), help="by default both")
    parser.add_argument("--edition", choices=EDITIONS, default=EDITIONS[0])
    parser.add_argument("--rows", type=int, default=20_000, help="of a submission (default: %(default)s)")
    parser.add_argument("--shape", choices=SHAPES, default="plain", help="of a submission (default: %(default)s)")
    parser.add_argument("--megabytes", type=float, default=4, help="of a download (default: %(default)s)")
    args = parser.parse_args()
    ids = args.competitions or registry.list(split="all") + registry.list(split="dev")
    parts: dict[str, Callable[[str, Path], Cost]] = {
        "prepare": partial(preparing, edition=args.edition, size=int(args.megabytes * 1e6)),
        "grade": partial(grading, edition=args.edition, rows=args.rows, shape=args.shape),
    }
    bad = False
    with tempfile.TemporaryDirectory(prefix="mlebench-catalog-") as folder:
        root = Path(folder)
        context = multiprocessing.get_context("spawn")
        for name in [args.part] if args.part else list(parts):
            print(f"{name} ({args.edition}):")
            found = []
            with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as pool:
                for each in ids:
                    found.append(pool.submit(parts[name], each, root).result())
                    print(found[-1], flush=True)
            large = [one for one in found if one.large]
            print(f"\n{len(large)} of {len(found)} enlarged to {_FEWEST:,} rows or files; the slowest:")
            for one in sorted(large, key=lambda one: -one.each)[:10]:
                print(one)
            print()
            bad |= name == "grade" and any(one.too_much for one in found)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
