"""Runs on an object store are found and read with few listings and concurrent reads, whoever wrote them."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.commands.ls import _groups, _runs
from storage.runs import listing
from storage.runs.folders import RunFolder, finished_folders, graded_folders, group_exists, records_of, stored_runs
from storage.runs.listing import list_group
from storage.runs.records import GradeRecord, RunRecord
from storage.store import Store
from storage.tables import read_table
from tasks.report import aggregate_group, write_report, write_tables
from tests.s3.fixtures import Bucket, FaultyBucket
from tests.waiting import until

COMPETITIONS, SEEDS = 15, 2
NAMES = [f"g/c{number:02}/{seed}" for number in range(COMPETITIONS) for seed in range(SEEDS)]


def write_runs(store: Store, group: str = "g", files: int = 3) -> None:
    """30 runs with grades, and further files, as agents leave them."""
    calls = [
        lambda c=number, s=seed: write_run(store, RunFolder(store, group, f"c{c:02}", s), files)
        for number in range(COMPETITIONS)
        for seed in range(SEEDS)
    ]
    list(store.concurrently(calls))


def write_run(store: Store, folder: RunFolder, files: int = 0) -> None:
    who: dict[str, Any] = {
        "run_group": folder.run_group,
        "run_id": folder.name.replace("/", "-"),
        "competition_id": folder.competition_id,
        "seed": folder.seed,
        "agent": "a",
        "edition": "v1",
    }
    for number in range(files):
        store.write(f"{folder.url}/code/{number}.py", b"pass")
    folder.write_run(RunRecord(**who, status="completed"))
    flags: dict[str, Any] = dict.fromkeys(
        ("any_medal", "gold_medal", "silver_medal", "bronze_medal", "above_median", "is_lower_better"), False
    )
    made: Any = {"created_at": "2026-01-01T00:00:00", "complexity": "low", "category": "x", "outcome": "valid"}
    made |= {f"{name}_threshold": 0.9 for name in ("gold", "silver", "bronze", "median")} | {"submission_path": "x"}
    folder.write_grade(GradeRecord(**who, **flags, **made, submission_exists=True, valid_submission=True, score=0.5))


@pytest.fixture
def store(faulty_s3: FaultyBucket) -> Store:
    return Store(faulty_s3.url)


class Requests:
    """The numbers of requests of a call, by method."""

    def __init__(self, bucket: FaultyBucket, call: Callable[[], object]) -> None:
        before = len(bucket.proxy.requests)
        self.result = call()
        self._made = [each.method for each in bucket.proxy.requests[before:]]

    def __getitem__(self, method: str) -> int:
        return self._made.count(method)


class TestNumbersOfRequests:
    def test_of_commands_about_a_group(self, faulty_s3: FaultyBucket, store: Store) -> None:
        write_runs(store)
        ls = Requests(faulty_s3, lambda: [row["run"] for row in _runs(store, "g")])
        assert ls.result == NAMES
        assert ls["LIST"] == 1, "finished runs and those in progress together"
        assert ls["GET"] == 2 * len(NAMES), "run and grade of each"
        assert ls["HEAD"] == 0

        aggregate = Requests(faulty_s3, lambda: write_tables(store, "g"))
        assert aggregate["LIST"] <= 20, "the runs, and the tables"
        assert aggregate["GET"] <= 3 * len(NAMES) + 20, "run, grade, and the agent's own validation scores, if any"
        assert len(read_table(store, "runs")) == len(read_table(store, "grades")) == len(NAMES)

        report = Requests(faulty_s3, lambda: write_report(store, ["g"]))
        assert report["LIST"] <= 14, "the tables, and whether agents were trained with test scores"
        assert report["GET"] <= 10

        assert aggregate_group(store, "g")

    def test_of_all_groups(self, faulty_s3: FaultyBucket, store: Store) -> None:
        for group in ("a", "b", "c"):
            write_runs(store, group, files=0)
        ls = Requests(faulty_s3, lambda: [(row["run_group"], row["runs"]) for row in _groups(store)])
        assert ls.result == [("a", 30), ("b", 30), ("c", 30)]
        assert ls["LIST"] == 4, "the groups, and the runs of each"
        assert ls["GET"] == 3 * len(NAMES)

    def test_which_runs_there_are_is_known_from_the_listing(self, faulty_s3: FaultyBucket, store: Store) -> None:
        write_runs(store, files=0)
        found = Requests(faulty_s3, lambda: [folder.name for folder in finished_folders(store, "g")])
        assert found.result == NAMES
        assert (found["LIST"], found["GET"], found["HEAD"]) == (1, 0, 0)

    def test_files_in_folders_of_runs_are_skipped(
        self, faulty_s3: FaultyBucket, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(listing, "_PAGE_NAMES", 20)
        write_runs(store, files=0)
        store.put_many(store.url("runs", "g", "c00", "0"), {f"code/{n}.py": Path(__file__) for n in range(300)})
        found = Requests(faulty_s3, lambda: [run.name for run in stored_runs(store, "g")])
        assert found.result == NAMES
        assert found["LIST"] <= 2 + 2 * len(NAMES) // 20, "fewer than 360 names take"

    def test_of_a_group_with_many_files(
        self, faulty_s3: FaultyBucket, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(listing, "_PAGE_NAMES", 5)
        write_runs(store)
        found = Requests(faulty_s3, lambda: [run.name for run in stored_runs(store, "g")])
        assert found.result == NAMES
        assert found["LIST"] <= 8 + 1 + COMPETITIONS, "not one for each run"


def test_records_are_read_concurrently(faulty_s3: FaultyBucket, store: Store) -> None:
    write_runs(store, files=0)
    first = faulty_s3.faults.hang("GET", r"run\.json")
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.extend(stored_runs(store, "g")))
    before = faulty_s3.proxy.count("GET")
    thread.start()
    until(lambda: faulty_s3.proxy.count("GET") - before == len(NAMES), what="all reads beside one that hangs")
    first.release()
    thread.join()
    assert [run.name for run in found] == NAMES


@pytest.mark.parametrize("names", [3, 7, 1000])
def test_whatever_lies_in_a_group_is_found(s3: Bucket, names: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_PAGE_NAMES", names)
    store, chance = Store(s3.url), random.Random(names)
    competitions = ["a", "a-b", "a.b", "a0", "b", "ü", "\U0001f40d"]
    files = ["run.json", "grade.json", "code/x.py", "code/sub/y.py", "logs/a.log", "try-2/submission.csv", "zz/1"]
    paths = {
        f"{chance.choice(competitions)}/{chance.choice(['0', '1', '10', '2', 'x'])}/{chance.choice(files)}"
        for _ in range(60)
    } | {"stray.txt", "a/stray.txt"}
    list(store.concurrently([lambda p=path: store.write(store.url("runs", "g", p), b"{}") for path in paths]))  # type: ignore[misc]
    folders: dict[tuple[str, str], set[str]] = {}
    for path in paths:
        competition, _, rest = path.partition("/")
        seed, slash, name = rest.partition("/")
        if slash:
            folders.setdefault((competition, seed), set()).add(name)
    found = list_group(store, "g")
    assert sorted((each.competition_id, each.seed) for each in found) == sorted(folders)
    for each in found:
        names_of = {name for name in folders[each.competition_id, each.seed] if "/" not in name}
        assert each.files in (None, names_of)
    one = list_group(store, "g", "a")
    assert {each.seed for each in one} == {seed for competition, seed in folders if competition == "a"}


def test_a_store_that_does_not_sort_its_listings(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(s3.url)
    write_runs(store, files=0)
    real = type(store.top.fs).call_s3

    def unsorted(fs: Any, method: str, *arguments: Any, **options: Any) -> Any:
        answer = real(fs, method, *arguments, **options)
        if method == "list_objects_v2":
            answer["Contents"] = answer["Contents"][::-1]
        return answer

    monkeypatch.setattr(type(store.top.fs), "call_s3", unsorted)
    assert [run.name for run in stored_runs(store, "g")] == NAMES


def test_runs_that_others_wrote_or_removed(s3: Bucket) -> None:
    store = Store(s3.url)
    folders = [RunFolder(store, "g", "c", seed) for seed in range(3)]
    for folder in folders:
        write_run(store, folder)
    for name in ("run.json", "grade.json"):  # as somebody copies a folder with a tool of his own
        s3.client.put_object(
            Bucket=s3.name, Key=f"some/prefix/runs/g/c/7/{name}", Body=store.read(f"{folders[2].url}/{name}")
        )
    store.remove(folders[1].url)
    there = ["g/c/0", "g/c/2", "g/c/7"]
    assert [run.folder.name for run in stored_runs(store, "g")] == there
    assert [found.folder.name for found in records_of(store, "g")] == there
    assert [folder.name for folder in graded_folders(store, "g")] == there
    assert [run.folder.name for run in stored_runs(store, competition_id="c")] == there


def test_files_without_a_record_are_no_run(s3: Bucket) -> None:
    store = Store(s3.url)
    store.write(store.url("runs", "g", "c", "0", "code", "x.py"), b"")  # and then the process was killed
    assert stored_runs(store) == []
    assert not group_exists(store, "g")
    write_run(store, RunFolder(store, "g", "c", 1))
    store.remove(RunFolder(store, "g", "c", 1).run_url)
    assert group_exists(store, "g"), "there is a grade, as of an imported report"
