"""Commands on a store that an older version wrote: they say the same, and bring its tables up to date."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from competitions import registry
from flows.cli import main
from storage.dataset import Dataset
from storage.datasets.current import require
from storage.datasets.job import Job
from storage.datasets.materialise import materialise
from storage.tables import write_table
from tests.bundles import bundle
from tests.storage.runs.older import GROUPS
from tests.stores import Store, put_dataset


def mlebench(store: Store, *arguments: object) -> int:
    return main([*map(str, arguments), "--store", store.root])


def test_groups_and_runs_are_listed(old_store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert mlebench(old_store, "ls") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [group for group in GROUPS if group != "old-import"]
    assert "2026-11-22 02:09" in lines[2]
    assert mlebench(old_store, "ls", "old-docker") == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["old-docker/digits/0", "completed", "0", "0.075", "-"]


def test_a_run_is_shown(old_store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert mlebench(old_store, "show", "old-docker/digits/0") == 0
    shown = capsys.readouterr().out
    for line in ("agent               dummy", "network             gateway", "score               0.075"):
        assert line in shown


@pytest.mark.parametrize("group", ["old-process", "old-docker", "old-copy", "old-services"])
def test_its_evidence_verifies(old_store: Store, group: str) -> None:
    assert mlebench(old_store, "verify", group) == 0


def test_a_report_brings_the_tables_of_its_groups_up_to_date(old_store: Store) -> None:
    graded = [group for group in GROUPS if group != "old-services"]
    write_table(old_store, "grades", "new", [{"competition_id": "digits", "message": "no submission"}])
    assert mlebench(old_store, "report", *graded) == 0
    grades = pd.read_parquet(f"{old_store.local()}/tables/grades")
    assert set(grades["run_group"]) == {*graded, "new"}
    assert grades["created_at"].notna().sum() == len(graded)
    page = old_store.local("reports", "+".join(graded), "report.html")
    assert "2026-11-22 02:09 UTC" in page.read_text()


def test_exports_and_submissions_are_as_they_were(old_store: Store, tmp_path: Path) -> None:
    assert mlebench(old_store, "export", "old-process", "--output-dir", tmp_path) == 0
    (path,) = tmp_path.glob("*_grading_report.json")
    (report,) = json.loads(path.read_text())["competition_reports"]
    record = old_store.read_json(old_store.run("old-process", "digits", 0) + "/grade.json")
    record["submission_path"] = record["submission_path"].replace(old_store.root, "file:///srv/mlebench")
    assert report == {name: record[name] for name in report}
    assert mlebench(old_store, "make-submission", "old-copy", "--output", tmp_path / "lines.jsonl") == 0
    (line,) = map(json.loads, (tmp_path / "lines.jsonl").read_text().splitlines())
    assert Path(line["submission_path"]).is_file()


def test_groups_are_compared(old_store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert mlebench(old_store, "compare", "old-process", "old-docker") == 0
    assert "1 same" in capsys.readouterr().out


@pytest.fixture
def unkeyed(store: Store) -> Store:
    """A store from before datasets had folders of their own, with digits prepared, and a run of it graded."""
    store.write(store.raw("digits"), bundle("digits"))
    folder, key = store.local("prepared", "v1", "digits"), "0123456789abcdef"
    materialise(Job("digits", store.raw("digits"), str(folder), key=key))
    store.write_json(f"{folder.as_uri()}/verified.json", {"key": key})
    record = {"hash": "h", "md5": "", "bytes": 1, "source": "bundled", "version": "of the old code", "at": ""}
    store.write_json(store.url("raw", "digits", "download.json"), record)
    store.remove(store.raw("digits"))
    url = store.run("group", "digits", 0)
    store.put(f"{url}/submission.csv", folder / registry.get("digits").facts.files.gold_submission)
    who = {"run_group": "group", "run_id": "group-digits-0", "competition_id": "digits", "seed": 0, "agent": "dummy"}
    run = {**who, "schema_version": 1, "key": "k", "edition": "v1", "status": "completed", "submission_exists": True}
    store.write_json(f"{url}/run.json", run)
    return store


def test_datasets_without_folders_of_their_own_are_used_proven_and_collected(
    unkeyed: Store, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = unkeyed.local("prepared", "v1", "digits")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.*") if path.name != "verified.json"}
    assert mlebench(unkeyed, "ls") == 0
    assert "1 prepared by other code, used as they are: digits (v1);" in capfd.readouterr().out
    assert mlebench(unkeyed, "doctor", "-c", "digits") == 0
    assert "prepared by other code: digits (v1) -> mlebench prepare -c digits --renew" in capfd.readouterr().out
    assert mlebench(unkeyed, "regrade", "group") == 0
    grade = unkeyed.read_json(unkeyed.run("group", "digits", 0) + "/grade.json")
    assert (grade["outcome"], grade["dataset_key"]) == ("valid", "0123456789abcdef")
    assert mlebench(unkeyed, "gc", "--old-datasets") == 0
    assert "0 B freed" in capfd.readouterr().out

    assert mlebench(unkeyed, "prepare", "-c", "digits") == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before, "nothing is made again"
    assert {path.name for path in folder.iterdir() if path.suffix != ".uses"} >= {"private", "public", "current.json"}
    assert not list(folder.glob("*/commit.json"))
    capfd.readouterr()
    assert mlebench(unkeyed, "prepare", "-c", "digits") == 0
    assert capfd.readouterr().out.splitlines() == [f"1 reused: all are already prepared in {unkeyed.root}"]

    new = put_dataset(unkeyed, "digits", key="new")
    assert mlebench(unkeyed, "gc", "--old-datasets", "--dry-run") == 0
    assert "would remove prepared v1 digits old" in capfd.readouterr().out
    assert mlebench(unkeyed, "gc", "--old-datasets") == 0
    assert not (folder / "public").exists()
    assert require(unkeyed, Dataset("v1", "digits")) == new
    assert mlebench(unkeyed, "gc", "--edition", "v1") == 0
    assert not unkeyed.glob("prepared/v1/digits/*/*")
