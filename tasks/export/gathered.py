"""The results of a run group, gathered from the store for an export.

Exports contain only what a reader of results needs: no answers, no submissions, no keys, no signatures, no paths of
this machine, and nothing of other run groups.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from common.errors import UserError
from competitions import registry
from competitions.editions import Edition
from competitions.errors import UnknownCompetition
from competitions.facts import CompetitionFacts
from grading.conditions import SWITCHES
from grading.medals import human_percentile
from sandbox.trajectory.calls import Call, calls_of
from storage.runs.folders import Records, RunFolder, StoredRun, no_runs, records_of
from storage.runs.records import GradeRecord, RunRecord, SnapshotRecord
from storage.store import Store
from storage.tables import read_table
from tasks.report import counting_of

if TYPE_CHECKING:
    import pandas as pd

JOURNAL, TRANSCRIPTS = "gateway.jsonl", "transcripts.jsonl"
_MAX_NAME_CHARACTERS = 100
CONDITIONS = (
    "backend",
    "network",
    "runtime",
    "obfuscated",
    "scorer",
    "feedback",
    "feedback_calls_per_day",
    "split",
    "split_version",
    "split_digest",
    "check_marks",
    "image",
    "image_digest",
    "time_limit_seconds",
    "cpus",
    "memory_bytes",
    "disk_bytes",
    "gpus",
    "hardware",
    "prices",
    "edition_version",
    "code_fingerprint",
    "package_version",
    "git_commit",
)
"""Fields of a run's record that state its conditions."""


@dataclass(frozen=True)
class Result:
    """One competition and seed: its run and its grade, one of which may be missing."""

    folder: RunFolder
    run: RunRecord | None
    grade: GradeRecord | None
    snapshots: tuple[SnapshotRecord, ...]
    """Without files that only have a public score."""
    facts: CompetitionFacts | None
    """None if the catalog does not have the competition."""

    @property
    def competition_id(self) -> str:
        """The competition."""
        return self.folder.competition_id

    @property
    def seed(self) -> int:
        """The seed."""
        return self.folder.seed

    @property
    def files(self) -> str:
        """URL of the folder with the files of the run, which for a regraded copy is that of the original run."""
        return StoredRun(self.folder, self.run).source if self.run is not None else self.folder.url

    def percentile(self, score: float | None) -> float:
        """Share of the leaderboard's teams that a score beats, 0-100: none without a score; NaN where not known."""
        percentiles = self.facts.leaderboard.percentiles if self.facts else None
        return 0.0 if score is None and percentiles is not None else human_percentile(score, percentiles)

    @property
    def beaten(self) -> float:
        """Share of the leaderboard's teams that the run beats, 0-100; NaN where not known, as without a grade."""
        return self.percentile(self.grade.score) if self.grade is not None else math.nan

    def calls(self) -> Iterator[Call]:
        """The run's requests to language models, one at a time; none if it made none."""
        with ExitStack() as opened:
            journal = _lines(opened, self.folder.store, f"{self.files}/{JOURNAL}")
            if journal is not None:
                yield from calls_of(journal, _lines(opened, self.folder.store, f"{self.files}/{TRANSCRIPTS}") or ())


@dataclass(frozen=True)
class Series:
    """The results of one agent in one edition."""

    run_group: str
    agent: str
    edition: Edition
    results: tuple[Result, ...]
    """Sorted by competition and seed."""
    rates: pd.DataFrame
    """As in `grading.statistics.aggregate`; the split `all` is every competition of the series."""

    @property
    def name(self) -> tuple[str, str, str]:
        """The parts of its name in names of files."""
        return self.run_group, self.agent, self.edition

    @property
    def benchmark(self) -> str:
        """The name of the benchmark in other tools, of which results with feedback are not a part."""
        return f"MLE-bench {self.edition}{' with feedback' * self.has_feedback}"

    @property
    def has_feedback(self) -> bool:
        """Whether agents were told scores on test rows in any run, so that its score is that on the other rows."""
        return any(getattr(record, "feedback", None) for one in self.results for record in (one.run, one.grade))

    @property
    def competition_ids(self) -> list[str]:
        """The competitions, each once."""
        return sorted({result.competition_id for result in self.results})

    @property
    def seeds(self) -> list[int]:
        """The seeds, each once."""
        return sorted({result.seed for result in self.results})

    def conditions(self) -> dict[str, Any]:
        """The conditions of the runs: a value that all share, or the sorted values."""
        shared: dict[str, Any] = {}
        for name in CONDITIONS:
            values = {value for result in self.results if (value := getattr(result.run, name, None)) is not None}
            if name in SWITCHES and values:  # it is off where it is not recorded
                values = {getattr(result.run, name, None) or False for result in self.results}
            if values:
                shared[name] = min(values) if len(values) == 1 else sorted(values, key=str)
        return shared


def file_name(*parts: str, unusual: str = r"[^\w.-]") -> str:
    """The name of a file from the parts that identify it: short, without characters that match `unusual`, its own.

    Parts are joined by "+", which neither groups nor competitions have in their names. A hash tells names apart that
    would be the same, such as those of the agents `x/y` and `x-y`.

    >>> file_name("a-b", "c", "v1"), file_name("a", "b-c", "v1"), file_name("a", "b/c", "v1")
    ('a-b+c+v1', 'a+b-c+v1', 'a+b-c+v1-e3fa8e77')
    """
    name = "+".join(parts)
    usual = "+".join(re.sub(unusual, "-", part, flags=re.ASCII) for part in parts)[:_MAX_NAME_CHARACTERS]
    return usual if usual == name else f"{usual}-{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:8]}"


def gather(store: Store, run_group: str, edition: Edition | None = None) -> list[Series]:
    """The results of a run group by agent, in one edition: by default in the only one that it is graded in.

    Raises:
        UserError: the group has no graded runs, or in several editions of which none is chosen.
    """
    import pandas as pd

    from grading.statistics.aggregate import rates_of
    from grading.statistics.series import latest_grades

    grades, runs = read_table(store, "grades", [run_group]), read_table(store, "runs", [run_group])
    if grades.empty:
        raise no_runs(store, run_group, "graded runs")
    chosen_edition = edition_of(run_group, sorted(set(grades["edition"])), edition)
    grades = latest_grades(grades[grades["edition"] == chosen_edition])
    counting = counting_of(store, grades, runs)
    all_rates, split_rates = (rates_of(grades, runs, counting, by).rates for by in ("category", "complexity"))
    rates = pd.concat([all_rates[all_rates["split"] == "all"], split_rates[split_rates["split"] != "all"]])
    rates = rates[rates["edition"] == chosen_edition]
    by_agent: dict[str, list[Result]] = {}
    for records in records_of(store, run_group):
        result = _result(records, chosen_edition)
        if (record := result.grade or result.run) is not None:
            by_agent.setdefault(record.agent, []).append(result)
    return [
        Series(run_group, agent, chosen_edition, tuple(results), rates[rates["agent"] == agent])
        for agent, results in sorted(by_agent.items())
    ]


def edition_of(run_group: str, editions: list[Edition], wanted: Edition | None) -> Edition:
    """The edition to export. Raises `UserError` if the group is not graded in it, or none is chosen of several."""
    if wanted is not None and wanted not in editions:
        raise UserError(f"nothing of group {run_group!r} was graded as {wanted}")
    if wanted is None and len(editions) > 1:
        raise UserError(f"group {run_group!r} is graded as {' and '.join(editions)}; choose one with --edition")
    return wanted or editions[0]


def _result(records: Records, edition: Edition) -> Result:
    grades = [grade for grade in records.grades if grade.edition == edition]
    run = records.run
    snapshots = [
        snapshot
        for snapshot in records.snapshots
        if (snapshot.edition or (run and run.edition)) == edition and snapshot.submission is None
    ]
    try:
        facts = registry.get(records.folder.competition_id).facts
    except UnknownCompetition:
        facts = None
    newest = max(grades, key=lambda grade: grade.created_at, default=None)
    return Result(records.folder, run, newest, tuple(snapshots), facts)


def _lines(opened: ExitStack, store: Store, url: str) -> Iterator[bytes] | None:
    """The lines of a file, read one at a time; None if there is none."""
    try:
        file = opened.enter_context(store.top.fs.open(store.top.path(store.relative(url)), "rb"))
    except FileNotFoundError:
        return None
    lines: Iterator[bytes] = iter(file)
    return lines
