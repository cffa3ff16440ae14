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
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
from pyarrow import csv

from benchmarks.enlarged import Download, downloads, renamings, repeat
from benchmarks.folders import fresh
from competitions import registry
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
_REAL = Path(__file__).with_name("real_rows.json")
_MIN_ENTRIES = 10_000  # with fewer rows and files, the time for 100,000 is not reliable
_MIN_RUNS, _MAX_RUNS = 3, 10  # other processes use the caches of the machine too, so a few runs are not reliable


@dataclass(frozen=True)
class Cost:
    """The cost of preparing or grading a competition."""

    competition_id: str
    entries: int
    """rows of the submission, or rows and files of the download"""
    size: int
    """bytes of the submission and the answers, or of the unpacked download"""
    seconds: float
    """CPU time"""
    memory: int
    """bytes by which the peak grew"""
    peak: int
    """bytes of the whole process at its peak"""
    enlarged: bool
    parsing: float = 0.0
    """CPU seconds that Arrow takes to parse what is graded"""

    @property
    def each(self) -> float:
        """CPU seconds for 100,000 rows or files."""
        return self.seconds / max(self.entries, 1) * 1e5

    @property
    def large(self) -> bool:
        """Whether it was enlarged to enough entries for a reliable time for 100,000."""
        return self.enlarged and self.entries >= _MIN_ENTRIES

    @property
    def too_much(self) -> bool:
        """Whether a grader needs more time or memory than allowed."""
        slow = self.each > SECONDS and self.seconds > PARSING * self.parsing
        return self.large and (slow or self.peak > MEMORY)

    def __str__(self) -> str:
        note = "" if self.enlarged else "  miniature"
        parsing = f"  {self.seconds / self.parsing:4.1f} x parsing" if self.parsing else ""
        return (
            f"{self.competition_id:60} {self.entries:8,} {self.seconds:7.2f} s {self.each:7.2f} s for 100,000 "
            f"{self.size / max(self.seconds, 1e-9) / 1e6:7.1f} MB/s{parsing} {self.peak / 1e6:6.0f} MB "
            f"{max(0, self.memory) / max(self.size, 1):6.1f} B/B{note}"
        )


class Rows(NamedTuple):
    """Rows of a submission, and of the answers if these are fewer."""

    submission: int
    answers: int | None = None


class Miniature(NamedTuple):
    """A small download, with the values of the competition's `params` for it."""

    raw: Path
    params: dict[str, Any] | None


class Subject(NamedTuple):
    """What one process measures: a download to prepare, or a submission to grade."""

    competition_id: str
    edition: Edition
    path: Path
    """The download or the submission."""
    folder: Path
    """The directory to prepare into, or the prepared directory with the answers."""
    enlarged: bool
    rows: int = 0
    """Rows of a submission."""
    miniature: Miniature | None = None
    """The miniature of a download."""
    found: Download | None = None
    """The content of a download."""


def download_of(competition_id: str, root: Path, edition: Edition, size: int, way: int) -> Subject:
    """The download, enlarged in one of several ways; after the last way, the miniature."""
    from tests.prepared import PreparedCompetitions  # not part of the installed package

    subject = PreparedCompetitions(root).get(competition_id, edition)
    folder = fresh(f"{competition_id}-", root)
    *_, (raw, content) = islice(downloads(subject.raw, folder / "raw.zip", size), way + 1)
    enlarged = raw != subject.raw
    miniature = Miniature(subject.raw, subject.params)
    return Subject(competition_id, edition, raw, folder, enlarged, miniature=miniature, found=content)


def submission_of(competition_id: str, root: Path, edition: Edition, rows: Rows, shape: str, way: int) -> Subject:
    """A submission, enlarged with the answers in one of several ways; after the last way, that of the miniature."""
    from tests.prepared import PreparedCompetitions

    subject = PreparedCompetitions(root).get(competition_id, edition)
    submission = _submission(subject)
    enlarged = _enlarged(subject, submission, rows, root, shape, way)
    if enlarged is None:
        return Subject(competition_id, edition, submission, subject.path, False, len(_texts(submission)))
    path, prepared, written = enlarged
    return Subject(competition_id, edition, path, prepared, True, written)


def preparing(subject: Subject) -> Cost | None:
    """Prepare a download, in a new process. The result is None if an enlarged download cannot be prepared."""
    from storage.datasets import prepare

    assert subject.found is not None
    assert subject.miniature is not None
    work = partial(prepare, subject.competition_id, edition=subject.edition, params=subject.miniature.params)
    work(subject.miniature.raw, subject.folder / "once")  # so that all modules are imported
    peak_before, start = _peak(), time.process_time()
    try:
        work(subject.path, subject.folder / "out")
    except Exception:  # prepare.py may not accept the repeated ids
        if subject.enlarged:
            return None
        raise
    seconds, peak = time.process_time() - start, _peak()
    rows, files, size = subject.found
    return Cost(subject.competition_id, rows + files, size, seconds, peak - peak_before, peak, subject.enlarged)


def grading(subject: Subject) -> Cost | None:
    """Grade a submission, in a new process. The result is None if an enlarged submission is not valid."""
    competition = registry.get(subject.competition_id)
    competition.load_grader()
    answers = subject.folder / competition.facts.files.answers

    def grade() -> None:
        competition.score(subject.path, competition.answers(subject.folder), subject.edition)

    peak_before = _peak()
    try:
        seconds = [_seconds(grade)]
    except Exception:  # a grader may not accept the repeated ids
        if subject.enlarged:
            return None
        raise
    peak = _peak()
    size = subject.path.stat().st_size + answers.stat().st_size
    while len(seconds) < (_MAX_RUNS if min(seconds) / max(subject.rows, 1) * 1e5 > SECONDS else _MIN_RUNS):
        seconds.append(_seconds(grade))
    parse = partial(_parse, (subject.path, answers))
    parsing = min(_seconds(parse) for _ in range(_MIN_RUNS)) if subject.enlarged else 0.0
    return Cost(competition.id, subject.rows, size, min(seconds), peak - peak_before, peak, subject.enlarged, parsing)


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


def _parse(paths: tuple[Path, ...]) -> None:
    for path in paths:
        csv.read_csv(path, csv.ReadOptions(use_threads=False), csv.ParseOptions(newlines_in_values=True))


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _peak() -> int:
    """The peak memory of this process, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _texts(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def _enlarged(
    subject: Prepared, submission: Path, rows: Rows, root: Path, shape: str, way: int
) -> tuple[Path, Path, int] | None:
    """The submission, a prepared directory with the answers, and the rows, repeated in one of several ways."""
    answers = subject.path / subject.competition.facts.files.answers
    if answers.suffix != ".csv":
        return None
    truth, submitted = _texts(answers), _texts(submission)
    resampling = subject.competition.facts.resampling
    names = [f"{name}" for name in submitted if name in truth and submitted[name].is_unique]
    if resampling and resampling.id:
        names = [resampling.id]
    times = max(1, rows.submission // max(len(submitted), 1))
    if not names or names[0] not in submitted or names[0] not in truth or times == 1:
        return None
    ways = renamings(truth[names[0]])
    if way >= len(ways):
        return None
    folder = fresh(f"{subject.competition.id}-", root)
    target = folder / answers.relative_to(subject.path)
    target.parent.mkdir(parents=True)
    answer_times = times if rows.answers is None else max(1, rows.answers // max(len(truth), 1))
    repeat(truth, names[:1], min(answer_times, times), ways[way]).to_csv(target, index=False)
    SHAPES[shape](repeat(submitted, names[:1], times, ways[way]), folder / "submission.csv")
    return folder / "submission.csv", folder, times * len(submitted)


def measured(enlarge: Callable[[int], Subject], measure: Callable[[Subject], Cost | None]) -> Cost:
    """The cost with the first way to enlarge that works. Each step has its own process, so that memory is separate."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as pool:
        for way in count():
            subject = pool.submit(enlarge, way).result()
            cost = pool.submit(measure, subject).result()
            if cost is not None:
                return cost
    raise AssertionError("the miniature itself is the last one")


def main() -> int:
    """Measure the catalog; returns 1 if a grader that was enlarged takes too long or too much."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.catalog", description=__doc__)
    parser.add_argument("competitions", nargs="*", metavar="ID")
    parser.add_argument("--part", choices=("prepare", "grade"), help="by default both")
    parser.add_argument("--edition", choices=EDITIONS, default=EDITIONS[0])
    parser.add_argument("--rows", type=int, default=20_000, help="of a submission (default: %(default)s)")
    parser.add_argument("--shape", choices=SHAPES, default="plain", help="of a submission (default: %(default)s)")
    parser.add_argument("--megabytes", type=float, default=4, help="of a download (default: %(default)s)")
    parser.add_argument("--real", action="store_true", help="rows of submissions and answers as with the real data")
    args = parser.parse_args()
    real = {name: Rows(sizes["rows"], sizes.get("answers")) for name, sizes in json.loads(_REAL.read_text()).items()}
    ids = args.competitions or registry.list(split="all") + registry.list(split="dev")
    exceeded = False
    with tempfile.TemporaryDirectory(prefix="mlebench-catalog-") as folder:
        root = Path(folder)
        for name in [args.part] if args.part else ["prepare", "grade"]:
            print(f"{name} ({args.edition}):")
            costs = []
            for competition_id in ids:
                if name == "prepare":
                    size = int(args.megabytes * 1e6)
                    cost = measured(partial(download_of, competition_id, root, args.edition, size), preparing)
                else:
                    rows = real[competition_id] if args.real and competition_id in real else Rows(args.rows)
                    cost = measured(
                        partial(submission_of, competition_id, root, args.edition, rows, args.shape), grading
                    )
                costs.append(cost)
                print(cost, flush=True)
            large = [cost for cost in costs if cost.large]
            print(f"\n{len(large)} of {len(costs)} enlarged to {_MIN_ENTRIES:,} rows or files; the slowest:")
            for cost in sorted(large, key=lambda cost: -cost.each)[:10]:
                print(cost)
            print()
            exceeded |= name == "grade" and any(cost.too_much for cost in costs)
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
