"""The commands around grading, on a store with a finished group: no agent runs, nothing is lost on the way."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from common.settings import get_settings
from competitions import registry
from flows.cli import main
from grading.report import GradingReport
from storage.datasets import prepare
from storage.tables import read_table
from tasks.aggregate import write_tables
from tests.stores import Store

GROUP = "group"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("dataset")
    competition = registry.get("diabetes")
    (root / "raw.zip").write_bytes(competition.bundle())
    prepare(competition.id, root / "raw.zip", root / "diabetes")
    return root / "diabetes"


@pytest.fixture
def group(store: Store, dataset: Path) -> Store:
    """A store in which `GROUP` has run three seeds of diabetes: perfect, the sample, and no submission."""
    for edition in ("v1", "v2"):
        shutil.copytree(dataset, store.local("prepared", edition, "diabetes"))
    facts = registry.get("diabetes").facts.files
    for seed, source in enumerate((facts.gold_submission, facts.sample_submission, None)):
        url = store.run(GROUP, "diabetes", seed)
        if source:
            store.put(f"{url}/submission.csv", dataset / source)
        store.write(f"{url}/logs/agent.log", b"log")
        store.write_json(f"{url}/run.json", run_record(seed, source is not None))
    assert mlebench("regrade", GROUP, store=store) == 0
    return store


def run_record(seed: int, made: bool) -> dict[str, Any]:
    who = {"run_group": GROUP, "run_id": f"{GROUP}-diabetes-{seed}", "competition_id": "diabetes", "seed": seed}
    how = {"agent": "mine", "edition": "v1", "backend": "process", "status": "completed", "message": None}
    when = {"started_at": "2026-01-01T00:00:00+00:00", "finished_at": "2026-01-01T00:01:00+00:00"}
    rest = {"exit_code": 0, "duration_seconds": 60.0, "time_limit_seconds": 600.0, "code_fingerprint": "abc"}
    return {"key": f"run-{seed}", **who, **how, **when, **rest, "submission_exists": made}


def mlebench(*arguments: object, store: Store) -> int:
    return main([*map(str, arguments), "--store", store.root])


def grades_of(store: Store, group: str = GROUP) -> pd.DataFrame:
    return read_table(store, "grades", [group]).sort_values(["edition", "seed"]).reset_index(drop=True)


class TestRegrade:
    def test_grades_what_the_runs_left(self, group: Store) -> None:
        grades = grades_of(group)
        assert grades["outcome"].tolist() == ["valid", "valid", "missing"]
        assert grades["score"].tolist()[0] == 0
        assert group.local("reports", GROUP, "report.html").is_file()

    def test_with_a_corrected_grader_says_what_changed(
        self, group: Store, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        record = group.run(GROUP, "diabetes", 1) + "/grade.json"
        before = group.read_json(record)
        group.write_json(record, {**before, "score": 1.0})  # as an older grader had it
        capsys.readouterr()
        assert mlebench("regrade", GROUP, store=group) == 0
        output = capsys.readouterr().out
        assert f"diabetes seed 1: 1.0 no medal -> {before['score']} no medal" in output
        assert "3 runs graded, 1 changed" in output
        assert grades_of(group)["score"].tolist()[1] == before["score"]

    def test_with_another_edition_both_stand_side_by_side(self, group: Store) -> None:
        assert mlebench("regrade", GROUP, "--edition", "v2", store=group) == 0
        assert grades_of(group)["edition"].tolist() == ["v1"] * 3 + ["v2"] * 3

    def test_as_another_group_leaves_the_first_as_it_is(self, group: Store) -> None:
        before = grades_of(group)
        assert mlebench("regrade", GROUP, "--as", "again", "--edition", "v2", store=group) == 0
        pd.testing.assert_frame_equal(grades_of(group), before)
        again = grades_of(group, "again")
        assert again["edition"].tolist() == ["v2"] * 3
        assert again["outcome"].tolist() == before["outcome"].tolist()
        assert mlebench("regrade", "again", store=group) == 0, "its submissions are those of the first"
        assert mlebench("regrade", GROUP, "--as", "again", store=group) == 1, "no group is overwritten"

    def test_versions_of_a_submission_are_graded_in_the_group_that_is_written(
        self, group: Store, dataset: Path
    ) -> None:
        url = group.run(GROUP, "diabetes", 0)
        group.put(f"{url}/snapshots/10.5.csv", dataset / registry.get("diabetes").facts.files.sample_submission)
        assert mlebench("regrade", GROUP, store=group) == 0
        before = group.read_json(f"{url}/snapshots.json")
        assert [(row["run_group"], row["at_seconds"]) for row in before] == [(GROUP, 10.5)]
        assert mlebench("regrade", GROUP, "--as", "again", store=group) == 0
        assert group.read_json(f"{url}/snapshots.json") == before
        assert read_table(group, "snapshots", ["again"])["at_seconds"].tolist() == [10.5]

    def test_an_edition_that_is_not_prepared_ends_with_the_cause(
        self, group: Store, capsys: pytest.CaptureFixture[str]
    ) -> None:
        shutil.rmtree(group.local("prepared", "v2"))
        assert mlebench("regrade", GROUP, "--as", "again", "--edition", "v2", store=group) == 1
        assert "none of the 3 runs could be graded" in capsys.readouterr().err

    def test_a_hostile_submission_is_an_invalid_one(self, group: Store) -> None:
        group.write(group.run(GROUP, "diabetes", 1) + "/submission.csv", b"," * 1_000_000)
        assert mlebench("regrade", GROUP, store=group) == 0
        assert grades_of(group)["outcome"].tolist() == ["valid", "invalid", "missing"]
        assert "columns" in grades_of(group)["message"][1]

    def test_a_bug_of_a_grader_is_ours_and_keeps_its_traceback(
        self, group: Store, dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        odd = tmp_path / "own" / "odd"
        shutil.copytree(registry.get("diabetes").folder, odd, ignore=shutil.ignore_patterns("__pycache__"))
        facts = odd / "competition.yaml"
        facts.write_text(facts.read_text().replace("id: diabetes", "id: odd", 1))
        (odd / "grade.py").write_text("def grade(submission, answers, edition):\n    raise KeyError('label')\n")
        monkeypatch.setenv("MLEBENCH_COMPETITIONS", str(odd.parent))
        get_settings.cache_clear()
        shutil.copytree(dataset, group.local("prepared", "v1", "odd"))
        url = group.run(GROUP, "odd", 0)
        group.put(f"{url}/submission.csv", dataset / registry.get("diabetes").facts.files.sample_submission)
        group.write_json(f"{url}/run.json", {**run_record(0, True), "competition_id": "odd", "run_id": "odd-0"})
        assert mlebench("regrade", GROUP, store=group) == 1
        record = group.read_json(f"{url}/grade.json")
        assert (record["outcome"], record["message"]) == ("failed", "grading failed: KeyError: 'label'")
        assert "Traceback" in record["detail"]
        assert "raise KeyError('label')" in record["detail"]
        gaps = read_table(group, "aggregates/gaps")
        assert "failed" in set(gaps.loc[gaps["competition_id"] == "odd", "reason"]), "never booked as the agent's"
        assert "KeyError" in group.local("reports", GROUP, "report.html").read_text()

    def test_goes_on_past_a_competition_that_is_not_prepared(
        self, group: Store, capsys: pytest.CaptureFixture[str]
    ) -> None:
        url = group.run(GROUP, "digits", 0)
        group.write_json(f"{url}/run.json", {**run_record(0, True), "competition_id": "digits"})
        assert mlebench("regrade", GROUP, store=group) == 1
        captured = capsys.readouterr()
        assert "digits (v1) is not prepared" in captured.err
        assert grades_of(group)["outcome"].tolist() == ["valid", "valid", "missing"]


class TestMakeSubmission:
    def test_what_it_writes_is_what_grade_reads(self, group: Store, tmp_path: Path) -> None:
        items = tmp_path / "items.jsonl"
        assert mlebench("make-submission", GROUP, "--output", items, store=group) == 0
        lines = [json.loads(line) for line in items.read_text().splitlines()]
        assert [line["seed"] for line in lines] == [0, 1, 2]
        assert [line["submission_path"] is None for line in lines] == [False, False, True]
        assert all(Path(line["logs_path"]).is_dir() for line in lines)
        assert mlebench("grade", "--submission", items, "--output-dir", tmp_path / "out", store=group) == 0
        (path,) = (tmp_path / "out").glob("*_grading_report.json")
        report = GradingReport.model_validate_json(path.read_text())
        assert [each.score for each in report.competition_reports][:2] == grades_of(group)["score"].tolist()[:2]
        assert (report.total_runs, report.total_runs_with_submissions) == (3, 2)

    def test_copies_for_a_store_elsewhere(self, group: Store, tmp_path: Path) -> None:
        items = tmp_path / "items.jsonl"
        mlebench("make-submission", GROUP, "--output", items, "--copy-to", tmp_path / "copies", store=group)
        first = json.loads(items.read_text().splitlines()[0])
        assert Path(first["submission_path"]) == tmp_path / "copies" / "diabetes" / "0" / "submission.csv"
        assert Path(first["submission_path"]).is_file()

    def test_published_run_folders_are_read(self, store: Store, dataset: Path, tmp_path: Path) -> None:
        runs = {"diabetes_0a1b": True, "digits_2c3d": False}
        for run, made in runs.items():
            (tmp_path / "runs" / run / "submission").mkdir(parents=True)
            if made:
                (tmp_path / "runs" / run / "submission" / "submission.csv").write_text("id\n")
                (tmp_path / "runs" / run / "logs").mkdir()
                (tmp_path / "runs" / run / "logs" / "agent.log").write_text("")
        metadata = tmp_path / "runs" / "metadata.json"
        metadata.write_text(json.dumps({"run_group": "x", "runs": {run: {} for run in runs}}))
        items = tmp_path / "items.jsonl"
        assert mlebench("make-submission", "--metadata", metadata, "--output", items, store=store) == 0
        first, second = map(json.loads, items.read_text().splitlines())
        assert (first["competition_id"], first["run_id"]) == ("diabetes", "diabetes_0a1b")
        assert first["submission_path"].endswith("diabetes_0a1b/submission/submission.csv")
        assert first["logs_path"].endswith("logs/agent.log")
        assert (second["competition_id"], second["submission_path"]) == ("digits", None)

    def test_says_what_is_wrong(self, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert mlebench("make-submission", "nobody", store=store) == 1
        assert mlebench("make-submission", store=store) == 2
        (tmp_path / "metadata.json").write_text("[]")
        assert mlebench("make-submission", "--metadata", tmp_path / "metadata.json", store=store) == 1
        assert "is not a metadata.json" in capsys.readouterr().err


class TestGrade:
    def test_submissions_at_urls_and_bad_ones(
        self, group: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        perfect = group.run(GROUP, "diabetes", 0) + "/submission.csv"
        (tmp_path / "hostile.csv").write_bytes(b"\0" * 100_000)
        paths = [perfect, str(tmp_path / "hostile.csv"), None, "nonsense://x", f"{perfect}.gone"]
        items = tmp_path / "items.jsonl"
        lines = [json.dumps({"competition_id": "diabetes", "submission_path": path, "seed": 3}) for path in paths]
        items.write_text("\n".join([*lines, '{"competition_id": "diabetes"}', "[" * 100_000, '{"a": "\xff"}']))
        assert mlebench("grade", "--submission", items, "--output-dir", tmp_path / "out", store=group) == 1
        told = capsys.readouterr().err
        for part in (
            "line 1: diabetes: 0",
            "line 2: diabetes: invalid",
            "line 3: diabetes: missing",
            "line 4: nonsense",
        ):
            assert part in told
        assert "line 5: diabetes: missing" in told
        assert all(f"line {number}: not a JSON object" in told for number in (6, 7, 8))
        (path,) = (tmp_path / "out").glob("*_grading_report.json")
        assert json.loads(path.read_text())["total_runs"] == 4

    def test_limits_can_be_set(self, group: Store, dataset: Path, tmp_path: Path) -> None:
        (tmp_path / "big.csv").write_bytes(b"id,progression\n" + b"1,2.5\n" * 2_000_000)
        items = tmp_path / "items.jsonl"
        items.write_text(json.dumps({"competition_id": "diabetes", "submission_path": str(tmp_path / "big.csv")}))
        code = mlebench("grade", "--submission", items, "--output-dir", tmp_path, "--memory", 0.01, store=group)
        assert code == 0, "an invalid submission is a result"


class TestReportsInAndOut:
    def test_exported_and_imported_they_are_the_same(self, group: Store, tmp_path: Path) -> None:
        assert mlebench("export", GROUP, "--output-dir", tmp_path, "--by-seed", store=group) == 0
        files = sorted(tmp_path.glob("*_grading_report.json"))
        assert len(files) == 3
        assert mlebench("import-report", *files, "--group", "imported", "--agent", "mine", store=group) == 0
        same = ["competition_id", "seed", "score", "any_medal", "gold_medal", "outcome", "edition", "complexity"]
        pd.testing.assert_frame_equal(grades_of(group)[same], grades_of(group, "imported")[same])
        assert mlebench("import-report", *files, "--group", "imported", store=group) == 1, "no group is overwritten"
        assert mlebench("report", GROUP, "imported", store=group) == 0

    def test_a_published_report_with_nan_and_an_unknown_competition(self, group: Store, tmp_path: Path) -> None:
        mlebench("export", GROUP, "--output-dir", tmp_path, store=group)
        (exported,) = tmp_path.glob("*_grading_report.json")
        content = json.loads(exported.read_text())
        reports = content["competition_reports"]
        path = "runs/2024-10_run-group_aide/unknown-competition_0a1b/submission/submission.csv"
        reports[0] |= {"score": math.nan, "extra": 1, "valid_submission": True}
        reports[1] |= {"competition_id": "unknown-competition", "submission_path": path}
        (tmp_path / "published.json").write_text(json.dumps(content))
        assert "NaN" in (tmp_path / "published.json").read_text()
        assert mlebench("import-report", tmp_path / "published.json", "--group", "published", store=group) == 0
        grades = grades_of(group, "published")
        assert set(grades["run_id"]) >= {"unknown-competition_0a1b"}
        assert grades.loc[grades["competition_id"] == "diabetes", "seed"].tolist() == [0, 1]
        assert grades["outcome"].value_counts().to_dict() == {"valid": 2, "missing": 1}

    def test_tables_that_do_not_say_which_leaderboard_are_read(self, group: Store, tmp_path: Path) -> None:
        mlebench("regrade", GROUP, "--as", "new", store=group)
        for url in group.glob(f"runs/{GROUP}/*/*/grade.json"):
            group.write_json(url, {k: v for k, v in group.read_json(url).items() if k != "leaderboard"})
        write_tables(group, GROUP)
        assert read_table(group, "grades", [GROUP])["leaderboard"].isna().all()
        assert mlebench("report", GROUP, "new", store=group) == 0
        summary = group.local("reports", f"{GROUP}+new", "summary.json").read_text()
        assert len(GradingReport.model_validate_json(summary).competition_reports) == 6
        assert mlebench("export", GROUP, "--output-dir", tmp_path, store=group) == 0

    @pytest.mark.parametrize("content", ["", "[]", '{"competition_reports": [{}]}', '{"competition_reports": 1}'])
    def test_what_is_no_report_is_refused(self, store: Store, tmp_path: Path, content: str) -> None:
        (tmp_path / "x.json").write_text(content)
        assert mlebench("import-report", tmp_path / "x.json", "--group", "g", store=store) == 1
        assert not store.glob("runs/*")

    def test_an_export_of_two_editions_needs_a_choice(self, group: Store, tmp_path: Path) -> None:
        mlebench("regrade", GROUP, "--edition", "v2", store=group)
        assert mlebench("export", GROUP, "--output-dir", tmp_path, store=group) == 1
        assert mlebench("export", GROUP, "--output-dir", tmp_path, "--edition", "v2", store=group) == 0


class TestCompareAndReport:
    def test_compare_says_which_competitions_changed(self, group: Store, capsys: pytest.CaptureFixture[str]) -> None:
        mlebench("regrade", GROUP, "--as", "second", store=group)
        url = group.run("second", "diabetes", 0)
        group.write_json(f"{url}/grade.json", {**group.read_json(f"{url}/grade.json"), "score": 1e9})
        write_tables(group, "second")
        capsys.readouterr()
        assert mlebench("compare", GROUP, "second", store=group) == 0
        output = capsys.readouterr().out
        assert "0 better, 1 worse, 0 mixed, 0 same" in output
        assert read_table(group, "comparisons")["change"].tolist() == ["worse"]
        assert "…" not in output, "no number is cut in a terminal of 80 columns"
        assert max(map(len, output.splitlines())) <= 80
        assert mlebench("compare", GROUP, "nobody", store=group) == 1

    def test_runs_that_were_never_made_or_graded_count_as_chosen(self, group: Store) -> None:
        """One run of digits was made and not graded, none of breast-cancer: left out, or failures, and said so."""
        url = group.run(GROUP, "digits", 0)
        group.write_json(f"{url}/run.json", {**run_record(0, True), "competition_id": "digits", "run_id": "digits-0"})
        write_tables(group, GROUP)
        found = {}
        for name, options in {"run": [], "split": ["--split", "demo"]}.items():
            for incomplete in ("exclude", "fail"):
                assert mlebench("report", GROUP, "--incomplete", incomplete, *options, store=group) == 0
                rates = read_table(group, "aggregates/rates")
                row = rates[(rates["split"] == "demo") & (rates["rate"] == "gold_medal")].iloc[0]
                found[name, incomplete] = (row["competitions"], row["seeds"], row["mean"], row["counted"])
                page = group.local("reports", GROUP, "report.html").read_text()
                words = {"exclude": "left out of every split", "fail": "are counted as failures"}
                assert words[incomplete] in page
                assert "<bdi>digits, mine, seed 2: no grade</bdi>" in page
                assert ("<bdi>breast-cancer, mine, seed 0: no grade</bdi>" in page) == (name == "split")
        gold = 1 / 3  # of three seeds one has gold, in diabetes
        assert found["run", "fail"] == (2, 3, pytest.approx(gold / 2), "what was run")
        assert found["split", "fail"] == (3, 3, pytest.approx(gold / 3), "demo")
        assert found["run", "exclude"][:2] == (2, 0)
        assert found["split", "exclude"][:2] == (3, 0)
        assert mlebench("report", GROUP, "--split", "nonsense", store=group) == 1

    def test_the_numbers_are_tables_first(self, group: Store) -> None:
        snapshot = {"run_id": f"{GROUP}-diabetes-0", "competition_id": "diabetes", "seed": 0, "at_seconds": 30.0}
        rows = [{**snapshot, "score": 0.0, "any_medal": True}]
        rows += [{**rows[0], "run_id": f"{GROUP}-diabetes-{seed}", "seed": seed} for seed in (1, 2)]
        pd.DataFrame(rows).to_parquet(_partition(group, "snapshots"))
        call = {"model": "m", "input_tokens": 10, "output_tokens": 5, "cost_usd": 0.5, "latency_seconds": 1.0}
        pd.DataFrame([{**snapshot, **call}]).to_parquet(_partition(group, "usage"))
        assert mlebench("report", GROUP, "--incomplete", "fail", "--interval", "bootstrap", store=group) == 0
        for table in (
            "rates",
            "by_seed",
            "pass_at_k",
            "best_of_k",
            "competitions",
            "over_time",
            "usage",
            "usage_by_run",
        ):
            assert len(pd.read_parquet(f"{group.local()}/tables/aggregates/{table}")), table
        rates = read_table(group, "aggregates/rates")
        assert set(rates["incomplete"]) == {"fail"}
        assert set(rates["interval"]) == {"bootstrap"}
        page = group.local("reports", GROUP, "report.html").read_text()
        for stated in ("Any medal over time", "Cost per medal", "Graded with", "not restricted"):
            assert stated in page


def _partition(store: Store, table: str) -> Path:
    path = store.local("tables", table, f"run_group={GROUP}", "part-7.parquet")
    assert path is not None
    path.parent.mkdir(parents=True)
    return path
