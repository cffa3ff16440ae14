"""Folders of runs, runs/<run_group>/<competition>/<seed>: paths of their records, readers and writers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from common.errors import UserError, close_matches
from common.jsonlines import parse
from competitions.editions import EDITIONS
from storage.runs.files import GRADES, REQUESTS, RUN, VALIDATIONS, grade_file, is_seed, snapshots_file
from storage.runs.listing import list_group
from storage.runs.records import GradeRecord, RunRecord, SnapshotRecord, UsageRecord, ValidationRecord, if_valid
from storage.store import Store


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
        return f"{self.url}/{grade_file(edition)}"

    def finished(self) -> bool:
        """Whether the run has a record."""
        return self.store.exists(self.run_url)

    def read_run(self) -> RunRecord | None:
        """The run's record; None if the run is not finished. Raises `RecordError` or `InvalidJson`."""
        content = self.store.read_json(self.run_url)
        return None if content is None else RunRecord.from_json(content, self.store.relative(self.run_url))

    def read_run_if_valid(self) -> RunRecord | None:
        """Like `read_run`, but an invalid file gives None with a warning: for work that is not about this run group."""
        return if_valid(self.read_run)

    def write_run(self, record: RunRecord) -> None:
        """Write the run's record, which marks the run as finished. Files are flushed before it, and it afterwards."""
        self.store.top.sync()
        self.store.write_json(self.run_url, record.to_json())
        self.store.top.sync()

    def read_grade(self, edition: str | None = None) -> GradeRecord | None:
        """The grade in the run's own edition, or in another one; None if there is none."""
        return self._grade(self.grade_url(edition))

    def read_grades(self, may_have: Callable[[str], bool] = lambda _: True) -> list[GradeRecord]:
        """The grades in all editions. `may_have`: whether to look for the file with that name."""
        urls = (f"{self.url}/{name}" for name in GRADES if may_have(name))
        return [grade for grade in map(self._grade, urls) if grade is not None]

    def write_grade(self, record: GradeRecord, edition: str | None = None) -> None:
        """Write a grade in the run's own edition, or in another one."""
        self.store.write_json(self.grade_url(edition), record.to_json())

    def read_snapshots(self, may_have: Callable[[str], bool] = lambda _: True) -> list[SnapshotRecord]:
        """The graded snapshots of the submission in all editions, sorted by time within each.

        `may_have`: whether to look for the file with that name.
        """
        names = (snapshots_file(edition) for edition in (None, *EDITIONS))
        urls = [f"{self.url}/{name}" for name in names if may_have(name)]
        contents = ((self.store.read_json(url) or [], self.store.relative(url)) for url in urls)
        return [record for rows, where in contents for record in SnapshotRecord.list_of(rows, where)]

    def write_snapshots(self, records: Iterable[SnapshotRecord], edition: str | None = None) -> None:
        """Write the snapshots graded in the run's own edition, or in another one. Writes no file if there are none."""
        rows = [record.to_json() for record in records]
        if rows:
            self.store.write_json(f"{self.url}/{snapshots_file(edition)}", rows)

    def snapshot_files(self) -> list[tuple[float, str]]:
        """Seconds since the start of the run and URL of each snapshot of the submission, sorted by time."""
        urls = self.store.glob(f"{self.store.relative(self.files_url)}/snapshots/*.csv")
        return sorted((float(url.rsplit("/", 1)[1].removesuffix(".csv")), url) for url in urls)

    def read_usage(self, run: RunRecord | None = None) -> Iterator[UsageRecord]:
        """Yield the run's requests that were sent to a provider. Refused requests are in the gateway's log only.

        A line of the log that is not a request causes a warning. `run` is the run's record, if it is available.
        """
        run = run or self.read_run()
        if run is None:
            return
        try:
            content = self.store.read(f"{self.of(run).files_url}/{REQUESTS}")
        except FileNotFoundError:
            return
        for call in parse(content):
            if call.get("status") != "refused" and (request := if_valid(partial(UsageRecord.of, run, call))):
                yield request

    def read_validations(self, run: RunRecord) -> Iterator[ValidationRecord]:
        """Yield what the validation service checked for the run, or for the original run of a copy."""
        source = run.submission_from or self.of(run).files_url
        try:
            content = self.store.read(f"{source}/{VALIDATIONS}")
        except FileNotFoundError:
            return
        yield from filter(None, (ValidationRecord.of(run, call) for call in parse(content)))

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


@dataclass(frozen=True)
class Records:
    """All records of a folder: the run's, if it is finished, and its grades, snapshots, requests and validations."""

    folder: RunFolder
    run: RunRecord | None
    grades: list[GradeRecord]
    snapshots: list[SnapshotRecord]
    usage: list[UsageRecord]
    validations: list[ValidationRecord]


def finished_folders(store: Store, run_group: str | None = None, competition_id: str | None = None) -> list[RunFolder]:
    """Folders of finished runs: of a group, of a competition in all groups, or all; sorted by name."""
    return _with_any(store, _candidates(store, run_group, competition_id), [RUN])


def stored_runs(store: Store, run_group: str | None = None, competition_id: str | None = None) -> list[StoredRun]:
    """The finished runs in `finished_folders`, with their records.

    An invalid record raises the errors of `read_run` in the runs of one group. In those of all groups it is skipped
    with a warning, because one bad file must not stop the work on other groups.
    """
    return read_runs(store, folders(store, run_group, competition_id), skip_invalid=run_group is None)


def read_runs(store: Store, run_folders: Sequence[RunFolder], *, skip_invalid: bool) -> list[StoredRun]:
    """The finished ones among the runs with these folders. Invalid records are skipped, or raise as `read_run` does."""
    read_record = RunFolder.read_run_if_valid if skip_invalid else RunFolder.read_run
    records = store.concurrently([partial(read_record, folder) for folder in run_folders])
    return [StoredRun(folder, run) for folder, run in zip(run_folders, records, strict=True) if run is not None]


def runs_of(store: Store, run_group: str) -> list[StoredRun]:
    """Like `stored_runs`, for one group. Raises `UserError` if it has no finished runs."""
    runs = stored_runs(store, run_group)
    if not runs:
        raise no_runs(store, run_group, "finished runs")
    return runs


def similar_groups(wanted: str, groups: Iterable[str]) -> str:
    """As `close_matches`; groups of `agent try` only for who wants one."""
    names = [name for name in groups if name != wanted]
    return close_matches(wanted, (name for name in names if wanted.startswith("try") or not name.startswith("try-")))


def no_runs(store: Store, run_group: str, what: str = "runs") -> UserError:
    """The error about a group without runs, or without graded runs, with similar names of groups."""
    close = similar_groups(run_group, store.folder_names("runs"))
    return UserError(
        f"no {what} of group {run_group!r} in {store.root}; `mlebench ls` lists its groups, and --store names another "
        f"store{'.' if close else ''}{close}"
    )


def grades_of(store: Store, runs: Iterable[StoredRun]) -> list[GradeRecord | None]:
    """The grade of each run in the run's own edition."""
    return list(store.concurrently([run.folder.read_grade for run in runs]))


def records_of(store: Store, run_group: str) -> Iterator[Records]:
    """Yield all records of each folder of a group that has any; sorted by name.

    An invalid file is skipped with a warning, because the other runs of the group must keep their rows.
    """
    for records in store.concurrently([partial(_records, candidate) for candidate in _candidates(store, run_group)]):
        if records.run is not None or records.grades:
            yield records


def graded_folders(store: Store, run_group: str) -> list[RunFolder]:
    """Folders of a group that contain a grade. Folders of imported reports contain nothing else."""
    return _with_any(store, _candidates(store, run_group), GRADES)


def group_exists(store: Store, run_group: str) -> bool:
    """Whether any run of the group has a record or a grade."""
    return bool(_with_any(store, _candidates(store, run_group), [RUN, *GRADES]))


def folders_with(store: Store, name: str, run_group: str | None = None) -> list[RunFolder]:
    """Folders of runs, finished or not, in which there is a file with that name; sorted by name."""
    (with_file,) = folders_with_each(store, [name], run_group)
    return with_file


def folders_with_each(store: Store, names: Sequence[str], run_group: str | None = None) -> list[list[RunFolder]]:
    """For each name, the folders of runs in which there is a file with it. The store is listed once."""
    candidates = _candidates(store, run_group)
    return [_with_any(store, candidates, [name]) for name in names]


def folders(store: Store, run_group: str | None = None, competition_id: str | None = None) -> list[RunFolder]:
    """Folders in which there may be the record of a run, found with few requests; sorted by name."""
    return [candidate.folder for candidate in _candidates(store, run_group, competition_id) if candidate.may_have(RUN)]


@dataclass(frozen=True)
class _Candidate:
    """A folder in which there may be a run, and the names of the files directly in it; None if they are not known."""

    folder: RunFolder
    files: frozenset[str] | None = None

    def may_have(self, name: str) -> bool:
        return self.files is None or name in self.files


def _candidates(store: Store, run_group: str | None = None, competition_id: str | None = None) -> list[_Candidate]:
    """All folders that a run may have, sorted by name."""
    if store.top.local:
        urls = store.glob(f"runs/{run_group or '*'}/{competition_id or '*'}/*/")
        candidates = [_Candidate(folder) for url in urls if (folder := RunFolder.at(store, url)) is not None]
    else:
        groups = store.folder_names("runs") if run_group is None else [run_group]
        listed = store.concurrently([partial(list_group, store, group, competition_id) for group in groups])
        candidates = [
            _Candidate(RunFolder(store, group, entry.competition_id, int(entry.seed)), entry.files)
            for group, of_group in zip(groups, listed, strict=True)
            for entry in of_group
            if is_seed(entry.seed)
        ]
    return sorted(candidates, key=lambda candidate: candidate.folder.name)


def _with_any(store: Store, candidates: list[_Candidate], names: Sequence[str]) -> list[RunFolder]:
    """The folders that have at least one of the files."""
    has_any = store.concurrently([partial(_has_any, store, candidate, names) for candidate in candidates])
    return [candidate.folder for candidate, has in zip(candidates, has_any, strict=True) if has]


def _has_any(store: Store, candidate: _Candidate, names: Sequence[str]) -> bool:
    if candidate.files is not None:
        return not candidate.files.isdisjoint(names)
    return any(_has_file(store, f"{candidate.folder.url}/{name}") for name in names)


def _records(candidate: _Candidate) -> Records:
    folder = candidate.folder
    run = folder.read_run_if_valid() if candidate.may_have(RUN) else None
    urls = [f"{folder.url}/{name}" for name in GRADES if candidate.may_have(name)]
    grades = [grade for url in urls if (grade := if_valid(partial(folder._grade, url))) is not None]
    snapshots = if_valid(partial(folder.read_snapshots, candidate.may_have)) or []
    elsewhere = run is not None and bool(run.files)
    usage = list(folder.read_usage(run)) if run and (elsewhere or candidate.may_have(REQUESTS)) else []
    checked = run is not None and (elsewhere or run.submission_from is not None or candidate.may_have(VALIDATIONS))
    return Records(folder, run, grades, snapshots, usage, list(folder.read_validations(run)) if run and checked else [])


def _has_file(store: Store, url: str) -> bool:
    """Whether a small file exists. Reading it takes one request; checking its existence may also list the folder."""
    local = store.local(store.relative(url))
    if local is not None:
        return local.is_file()
    try:
        store.read(url)
    except FileNotFoundError:
        return False
    return True
