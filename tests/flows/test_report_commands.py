"""Reports of a finished group: exported, imported, compared, and shown."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from grading.report import CompetitionReport, GradingReport
from storage.tables import read_table, write_frame
from tasks.report import write_tables
from tests.flows.graded import GROUP, dataset, graded, grades_of, group, mlebench, run_record
from tests.stores import Store

__all__ = ["dataset", "graded", "group"]


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

    @pytest.mark.parametrize(
        "change",
        [
            {"score": 10**400},
            {"gold_threshold": 10**4200},
            {"submission_path": "diabetes_\ud800/submission.csv"},
            {"submission_path": "diabetes_" + "x" * 100_000},
            {"submission_path": "a\0b"},
            {"competition_id": "\u202eabc"},
            {"created_at": "9999-12-31T23:59:59"},
            "[" * 100_000,
            '{"competition_reports": ' + '{"a": ' * 100_000,
            "1" * 10_000,
            "\ufeff[]",
        ],
        ids=lambda change: str(change)[:40].encode("ascii", "replace").decode(),
    )
    def test_extremes_are_refused_in_one_line_or_imported(
        self, group: Store, tmp_path: Path, change: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        if isinstance(change, str):
            content = change
        else:
            grade = group.read_json(group.run(GROUP, "diabetes", 0) + "/grade.json")
            report = {name: grade[name] for name in CompetitionReport.model_fields if name in grade}
            content = json.dumps({"competition_reports": [{**report, **change}]})
        (tmp_path / "x.json").write_bytes(content.encode())
        capsys.readouterr()
        code = mlebench("import-report", tmp_path / "x.json", "--group", "g", store=group)
        told = capsys.readouterr().err
        assert "Traceback" not in told
        assert code == 0 or (told.count("\n") == 1 and "x.json" in told)
        assert code == 0 or not group.glob("runs/g/*")

    def test_an_export_of_two_editions_needs_a_choice(self, group: Store, tmp_path: Path) -> None:
        mlebench("regrade", GROUP, "--edition", "v2", store=group)
        assert mlebench("export", GROUP, "--output-dir", tmp_path, store=group) == 1
        assert mlebench("export", GROUP, "--output-dir", tmp_path, "--edition", "v2", store=group) == 0


class TestConditionsThatAreOn:
    """An operator's additions, such as the scorer, are stated wherever the results are."""

    @pytest.fixture
    def scored(self, group: Store, capsys: pytest.CaptureFixture[str]) -> Store:
        url = group.run(GROUP, "diabetes", 1)
        group.write_json(f"{url}/run.json", {**group.read_json(f"{url}/run.json"), "scorer": True})
        write_tables(group, GROUP)
        capsys.readouterr()
        return group

    def test_verify_and_show(self, scored: Store, capsys: pytest.CaptureFixture[str]) -> None:
        mlebench("verify", GROUP, store=scored)
        assert "\nconditions: scorer (1 of 3 runs)\n" in capsys.readouterr().out
        mlebench("verify", GROUP, "--json", store=scored)
        assert json.loads(capsys.readouterr().out)["conditions"] == ["scorer"]
        assert mlebench("show", f"{GROUP}/diabetes/1", store=scored) == 0
        assert "\nconditions          scorer\n" in capsys.readouterr().out
        assert mlebench("show", f"{GROUP}/diabetes/0", store=scored) == 0
        assert "conditions" not in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("format_name", "file"), [("report", "*_report.json"), ("submissions", "submission.jsonl")]
    )
    def test_exports_that_have_no_place_for_them(
        self, scored: Store, tmp_path: Path, format_name: str, file: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        options = ["--format", format_name, "--output-dir", tmp_path / "out"]
        assert mlebench("export", GROUP, *options, store=scored) == 0
        assert len(list((tmp_path / "out").glob(file))) == 1
        told = "conditions of these runs, to be stated with their results: scorer (1 of 3 runs)"
        assert told in capsys.readouterr().err

    def test_feedback_is_stated_with_its_share(
        self, scored: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder = scored.run(GROUP, "diabetes", 1)
        told = {"feedback": 0.3, "feedback_calls_per_day": 5, "scorer": None}
        scored.write_json(f"{folder}/run.json", {**scored.read_json(f"{folder}/run.json"), **told})
        scored.write_json(f"{folder}/grade.json", {**scored.read_json(f"{folder}/grade.json"), "feedback": 0.3})
        write_tables(scored, GROUP)
        mlebench("verify", GROUP, store=scored)
        assert "\nconditions: feedback on 30 % of the test rows (1 of 3 runs)\n" in capsys.readouterr().out
        assert mlebench("ls", GROUP, store=scored) == 0
        assert capsys.readouterr().out.count("(private)") == 1
        options = ["--format", "leaderboard", "--output-dir", tmp_path / "out"]
        assert mlebench("export", GROUP, *options, store=scored) == 1
        assert f"{GROUP} ran with feedback" in capsys.readouterr().err
        assert not list((tmp_path / "out").iterdir())
        for name, place in (("mlflow", "*/meta.yaml"), ("every-eval-ever", "*.json")):
            options = ["--format", name, "--output-dir", tmp_path / name]
            assert mlebench("export", GROUP, *options, store=scored) == 0
            text = next((tmp_path / name).glob(place)).read_text()
            assert {"mlflow": "(feedback)", "every-eval-ever": "MLE-bench v1 with feedback: "}[name] in text


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
        assert "…" not in output
        assert mlebench("compare", GROUP, "second", "--json", store=group) == 0
        questions = {row["question"] for row in json.loads(capsys.readouterr().out)["differences"]}
        assert questions == {"these", "like_these"}, "the words of `mlebench plan --json`"
        assert mlebench("compare", GROUP, "nobody", store=group) == 1

    def test_compare_says_who_had_which_conditions(self, group: Store, capsys: pytest.CaptureFixture[str]) -> None:
        mlebench("regrade", GROUP, "--as", "second", store=group)
        for seed in range(3):
            url = group.run("second", "diabetes", seed)
            group.write_json(f"{url}/run.json", {**group.read_json(f"{url}/run.json"), "scorer": True})
        group.remove(group.run("second", "diabetes", 2))
        write_tables(group, "second")
        capsys.readouterr()
        assert mlebench("compare", GROUP, "second", "--everything", store=group) == 0
        first, second, head, row, *_ = capsys.readouterr().out.splitlines()
        assert first == f"Conditions differ: scorer ({GROUP}: no, second: yes), counted seeds ({GROUP}: 3, second: 2)"
        assert second == f"A: {GROUP}  B: second"
        assert "BETTER IS" in head
        assert "lower" in row.split()
        assert mlebench("compare", GROUP, "second", "--json", store=group) == 0
        told = json.loads(capsys.readouterr().out)["conditions"]
        assert told["scorer"] == {GROUP: "no", "second": "yes"}

    def test_runs_that_were_never_made_or_graded_count_as_chosen(self, group: Store) -> None:
        """One run of digits was made and not graded, none of breast-cancer: left out, or failures, and said so."""
        url = group.run(GROUP, "digits", 0)
        group.write_json(f"{url}/run.json", {**run_record(0, True), "competition_id": "digits", "run_id": "digits-0"})
        write_tables(group, GROUP)
        found = {}
        for name, options in {"run": [], "split": ["--split", "demo"]}.items():
            for incomplete in ("available", "exclude", "fail"):
                assert mlebench("report", GROUP, "--incomplete", incomplete, *options, store=group) == 0
                rates = read_table(group, "aggregates/rates")
                row = rates[(rates["split"] == "demo") & (rates["rate"] == "gold_medal")].iloc[0]
                found[name, incomplete] = (row["competitions"], row["seeds"], row["mean"], row["counted"])
                page = group.local("reports", GROUP, "report.html").read_text()
                words = {"available": "counts with its graded runs", "exclude": "left out of every split"}
                words |= {"fail": "counted as failures"}
                assert words[incomplete] in page
                assert "<bdi>digits, mine, seed 2: no grade</bdi>" in page
                assert ("<bdi>breast-cancer, mine, seed 0: no grade</bdi>" in page) == (name == "split")
        gold = 1 / 3  # of three seeds one has gold, in diabetes
        assert found["run", "fail"] == (2, 3, pytest.approx(gold / 2), "what was run")
        assert found["split", "fail"] == (3, 3, pytest.approx(gold / 3), "demo")
        assert found["run", "available"][:3] == found["split", "available"][:3]
        assert found["run", "available"][:3] == (1, 3, pytest.approx(gold))
        assert found["run", "exclude"][:2] == found["split", "exclude"][:2] == (0, 0)
        assert mlebench("report", GROUP, "--split", "nonsense", store=group) == 2

    def test_the_numbers_are_tables_first(self, group: Store) -> None:
        snapshot = {"run_id": f"{GROUP}-diabetes-0", "competition_id": "diabetes", "seed": 0, "at_seconds": 300.0}
        rows = [{**snapshot, "score": 0.0, "any_medal": True}]
        rows += [{**rows[0], "run_id": f"{GROUP}-diabetes-{seed}", "seed": seed} for seed in (1, 2)]
        write_frame(group, "snapshots", GROUP, pd.DataFrame(rows), "part-7")
        del snapshot["at_seconds"]
        call = {"model": "m", "input_tokens": 10, "output_tokens": 5, "cost_usd": 0.5, "latency_seconds": 1.0}
        write_frame(group, "usage", GROUP, pd.DataFrame([{**snapshot, **call}]), "part-7")
        assert mlebench("report", GROUP, "--incomplete", "fail", store=group) == 0
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
        page = group.local("reports", GROUP, "report.html").read_text()
        for stated in ("Any medal over time", "Cost per medal", "Graded with", "not restricted"):
            assert stated in page
