"""Folders of runs: which there are, and which records they hold."""

from __future__ import annotations

from typing import Any

import pytest

from common.errors import UserError
from storage.runs.folders import (
    RunFolder,
    finished_folders,
    graded_folders,
    group_exists,
    runs_of,
    similar_groups,
    stored_runs,
)
from storage.runs.records import RunRecord
from storage.store import Store


def run(store: Store, group: str, competition_id: str = "x", seed: int = 0, **fields: Any) -> RunFolder:
    folder = RunFolder(store, group, competition_id, seed)
    run_id = f"{group}-{competition_id}-{seed}"
    who: dict[str, Any] = {"run_group": group, "run_id": run_id, "competition_id": competition_id, "seed": seed}
    folder.write_run(RunRecord(**who, agent="a", edition="v1", **fields))
    return folder


def test_a_run_without_a_record_is_not_finished(store: Store) -> None:
    folder = RunFolder(store, "g", "x", 0)
    store.write(f"{folder.url}/submission.csv", b"id\n")
    assert (folder.finished(), folder.read_run(), folder.read_grade(), folder.read_snapshots()) == (
        False,
        None,
        None,
        [],
    )
    assert finished_folders(store) == []
    run(store, "g")
    assert folder.finished()
    assert finished_folders(store) == [folder]


def test_runs_of_a_group_or_of_a_competition_are_sorted_by_name(store: Store) -> None:
    for group, competition_id, seed in (("b", "x", 0), ("a", "y", 0), ("a", "x", 1), ("a", "x", 0)):
        run(store, group, competition_id, seed)
    assert [each.name for each in stored_runs(store, "a")] == ["a/x/0", "a/x/1", "a/y/0"]
    assert [each.name for each in stored_runs(store, competition_id="x")] == ["a/x/0", "a/x/1", "b/x/0"]
    with pytest.raises(UserError, match="no finished runs of group 'c'"):
        runs_of(store, "c")


def test_a_regraded_copy_has_its_files_in_the_run_that_it_is_of(store: Store) -> None:
    first = run(store, "g")
    run(store, "again", submission_from=first.url)
    assert [each.source for each in stored_runs(store)] == [first.url, first.url]


def test_what_is_no_folder_of_a_run_is_none(store: Store) -> None:
    folder = RunFolder(store, "g", "x", 3)
    assert RunFolder.at(store, folder.url) == folder
    for name in ("first", "03", "٣", "-3", "3.0"):
        assert RunFolder.at(store, store.url("runs", "g", "x", name)) is None
    for url in (store.url("runs", "g", "x"), "file:///elsewhere/runs/g/x/3"):
        assert RunFolder.at(store, url) is None


def test_versions_of_a_submission_are_in_the_order_of_time(store: Store) -> None:
    folder = run(store, "g")
    for name in ("100.5", "9.0", "20.25"):
        store.write(f"{folder.url}/snapshots/{name}.csv", b"id\n")
    assert [seconds for seconds, _ in folder.snapshot_files()] == [9.0, 20.25, 100.5]


def test_grades_of_several_editions_stand_beside_each_other(recorded_store: Store) -> None:
    folder = RunFolder(recorded_store, "old-process", "digits", 0)
    first = folder.read_grade()
    assert first is not None
    folder.write_grade(first.replace(edition="v2"), "v2")
    assert [grade.edition for grade in folder.read_grades()] == ["v2", "v1"]
    assert folder.read_grade() == first
    assert [each.run_group for each in graded_folders(recorded_store, "old-process")] == ["old-process"]


def test_trials_are_suggested_only_to_who_wants_one() -> None:
    groups = ["mine", "try-mine-20260101T000000Z"]
    assert similar_groups("minee", groups) == " Did you mean mine?"
    assert similar_groups("20260101T000000Z", groups) == ""
    assert "try-mine" in similar_groups("try-mine", groups)


def test_an_imported_group_has_grades_and_no_runs(recorded_store: Store) -> None:
    assert stored_runs(recorded_store, "old-import") == []
    assert [each.name for each in graded_folders(recorded_store, "old-import")] == ["old-import/digits/0"]
    assert group_exists(recorded_store, "old-import")
    assert not group_exists(recorded_store, "nobody")
