"""Folders of runs, runs/<run_group>/<competition>/<seed>: paths of their records, readers and writers."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from common.errors import UserError
from common.jsonlines import parse
from storage.runs.records import GradeRecord, RecordError, RunRecord, SnapshotRecord, UsageRecord
from storage.store import InvalidJson, Store

RUN = "run.json"
GRADE = "grade.json"
SNAPSHOTS = "snapshots.json"
EVIDENCE = "ledger.jsonl"
VALIDATIONS = "validation.jsonl"
REQUESTS = "gateway.jsonl"
TRY = "try-"
"""Beginning of the names of folders for the files of a run that replaces another one; see `storage.runs.publish`."""
_logger = logging.getLogger("mlebench.storage")


def is_seed(name: str) -> bool:
    """Whether a run's folder may have that name: a seed as it is written, so neither 00 nor other scripts' digits."""
    return name.isdecimal() and str(int(name)) == name


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run, which need not exist. `run.json` is written last; without it the run is not finished."""

    store: Store
    run_group: str
    competition_id: str
    seed: int
    files: str = ""
    """Folder in this one that holds the files of the run, from its record; empty if they are in this one itself."""

    @classmethod
    def at(cls, store: Store, url: str) -> RunFolder | None:
        """The folder with that URL, or with that URL of its files; None if it is not the URL of a run."""
        parts = store.relative(url).split("/")
        if len(parts) not in (4, 5) or parts[0] != "runs" or not is_seed(parts[3]):
            return None
        return cls(store, parts[1], parts[2], int(parts[3]), *parts[4:])

    def of(self, record: RunRecord) -> RunFolder:
        """The folder with the files that belong to a record of this run."""
        return replace(self, files=record.files or "")

    @property
    def name(self) -> str:
        """GROUP/COMPETITION/SEED."""
        return f"{self.run_group}/{self.competition_id}/{self.seed}"

    @property
    def url(self) -> str:
        """URL of the folder."""
        return self.store.run(self.run_group, self.competition_id, self.seed)

    @property
    def files_url(self) -> str:
        """URL of the folder with the files of the run: submission, logs, code, snapshots and evidence."""
        return f"{self.url}/{self.files}" if self.files else self.url

    @property
    def run_url(self) -> str:
        """URL of the run's record."""
        return f"{self.url}/{RUN}"

    def grade_url(self, edition: str | None = None) -> str:
        """URL of the grade in the run's own edition, or in another one."""
        return f"{self.url}/{GRADE if edition is None else GRADE.replace('.json', f'-{edition}.json')}"

    def finished(self) -> bool:
        """Whether the run has a record."""
        return self.store.exists(self.run_url)

    def read_run(self) -> RunRecord | None:
        """The run's record; None if the run is not finished. Raises `RecordError` or `InvalidJson`."""
        content = self.store.read_json(self.run_url)
        return None if content is None else RunRecord.from_json(content, self.store.relative(self.run_url))

    def read_run_if_valid(self) -> RunRecord | None:
        """Like `read_run`, but an invalid file is a warning, and None: for work that is not about this run group."""
        try:
            return self.read_run()
        except (RecordError, InvalidJson) as error:
            _logger.warning("a run is skipped: %s", error)
            return None

    def write_run(self, record: RunRecord) -> None:
        """Write the run's record, which marks the run as finished: its files have reached the disk before, it after."""
        self.store.top.sync()
        self.store.write_json(self.run_url, record.to_json())
        self.store.top.sync()

    def read_grade(self, edition: str | None = None) -> GradeRecord | None:
        """The grade in the run's own edition, or in another one; None if there is none."""
        return self._grade(self.grade_url(edition))

    def read_grades(self) -> list[GradeRecord]:
        """The grades in all editions."""
        urls = self.store.glob(f"{self.store.relative(self.url)}/grade*.json")
        return [grade for grade in map(self._grade, urls) if grade is not None]

    def write_grade(self, record: GradeRecord, edition: str | None = None) -> None:
        """Write a grade in the run's own edition, or in another one."""
        self.store.write_json(self.grade_url(edition), record.to_json())

    def read_snapshots(self) -> list[SnapshotRecord]:
        """The graded snapshots of the submission, sorted by time."""
        url = f"{self.url}/{SNAPSHOTS}"
        rows: list[Any] = self.store.read_json(url) or []
        return [SnapshotRecord.from_json(row, self.store.relative(url)) for row in rows]

    def write_snapshots(self, records: Iterable[SnapshotRecord]) -> None:
        """Write the graded snapshots. Writes no file if there are none."""
        rows = [record.to_json() for record in records]
        if rows:
            self.store.write_json(f"{self.url}/{SNAPSHOTS}", rows)

    def snapshot_files(self) -> list[tuple[float, str]]:
        """Seconds since the start of the run and URL of each snapshot of the submission, sorted by time."""
        urls = self.store.glob(f"{self.store.relative(self.files_url)}/snapshots/*.csv")
        return sorted((float(url.rsplit("/", 1)[1].removesuffix(".csv")), url) for url in urls)

    def read_usage(self) -> Iterator[UsageRecord]:
        """Yield the run's requests that were sent to a provider. Refused requests are in the gateway's log only."""
        run = self.read_run()
        if run is None:
            return
        try:
            content = self.store.read(f"{self.of(run).files_url}/{REQUESTS}")
        except FileNotFoundError:
            return
        yield from (UsageRecord.of(run, call) for call in parse(content) if call.get("status") != "refused")

    def _grade(self, url: str) -> GradeRecord | None:
        content = self.store.read_json(url)
        return None if content is None else GradeRecord.from_json(content, self.store.relative(url))


@dataclass(frozen=True)
class StoredRun:
    """A finished run: its folder and its record."""

    folder: RunFolder
    record: RunRecord

    @property
    def name(self) -> str:
        """GROUP/COMPETITION/SEED."""
        return self.record.name

    @property
    def source(self) -> str:
        """URL of the folder with its files, which for a regraded copy is that of the original run."""
        return self.record.submission_from or self.folder.of(self.record).files_url


def finished_folders(store: Store, run_group: str = "*", competition_id: str = "*") -> list[RunFolder]:
    """Folders of finished runs: of a group, of a competition in all groups, or all; sorted by name."""
    return _folders(store, f"runs/{run_group}/{competition_id}/*/{RUN}")


def stored_runs(store: Store, run_group: str = "*", competition_id: str = "*") -> list[StoredRun]:
    """The finished runs in `finished_folders`, with their records.

    An invalid record raises the errors of `read_run` in the runs of one group. In those of all groups it is skipped
    with a warning, because one bad file must not stop the work on other groups.
    """
    read = RunFolder.read_run_if_valid if run_group == "*" else RunFolder.read_run
    found = ((folder, read(folder)) for folder in finished_folders(store, run_group, competition_id))
    return [StoredRun(folder, record) for folder, record in found if record is not None]


def runs_of(store: Store, run_group: str) -> list[StoredRun]:
    """Like `stored_runs`, for one group. Raises `UserError` if it has no finished runs."""
    found = stored_runs(store, run_group)
    if not found:
        raise UserError(f"no finished runs of group {run_group!r} in {store.root}; `mlebench ls` names the groups")
    return found


def graded_folders(store: Store, run_group: str) -> list[RunFolder]:
    """Folders of a group that contain a grade. Folders of imported reports contain nothing else."""
    return _folders(store, f"runs/{run_group}/*/*/grade*.json")


def group_exists(store: Store, run_group: str) -> bool:
    """Whether any run of the group has a record or a grade."""
    return bool(store.glob(f"runs/{run_group}/*/*/*.json"))


def _folders(store: Store, pattern: str) -> list[RunFolder]:
    urls = dict.fromkeys(url.rsplit("/", 1)[0] for url in store.glob(pattern))
    return [folder for folder in (RunFolder.at(store, url) for url in urls) if folder is not None]
