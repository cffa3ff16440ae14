"""`mlebench leaderboard`, and grading with a leaderboard that it fetched."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from common.errors import UserError
from competitions import registry
from flows.cli import main
from grading.leaderboards import compare_percentiles
from storage.sources.kaggle.leaderboard import read_leaderboard
from storage.tables import read_table
from tests.kaggle_server import KaggleServer
from tests.prepared import PreparedCompetitions
from tests.stores import Store, copy_dataset

ID = "leaf-classification"


def run_record(group: str, competition_id: str) -> dict[str, Any]:
    who = {"run_group": group, "run_id": f"{group}-0", "competition_id": competition_id, "seed": 0, "agent": "mine"}
    how = {"edition": "v1", "backend": "process", "status": "completed", "message": None, "exit_code": 0}
    when = {"started_at": "2026-01-01T00:00:00+00:00", "finished_at": "2026-01-01T00:01:00+00:00"}
    rest = {"duration_seconds": 60.0, "time_limit_seconds": 600.0, "code_fingerprint": "abc", "submission_exists": True}
    return {"key": "run", **who, **how, **when, **rest}


class TestLeaderboard:
    def test_stored_figures_need_no_network(self, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["leaderboard", ID]) == 0
        out = capsys.readouterr().out
        assert "multiclass log loss, lower is better, 1595 teams" in out
        assert "bronze  0.01526" in out
        assert "100 %  34.18989" in out
        assert main(["leaderboard", ID, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["silver"] == 0.00791

    def test_refresh_compares_and_writes_a_table(
        self, kaggle: KaggleServer, store: Store, capsys: pytest.CaptureFixture[str]
    ) -> None:
        scores = sorted(random.Random(0).uniform(0, 5) for _ in range(1594))
        scores[0] = 0.0
        rows = [{"teamId": n, "teamName": f"team {n}", "score": f"{score:.5f}"} for n, score in enumerate(scores)]
        kaggle.teams[ID] = [*rows, {"teamId": 9999, "teamName": None, "score": ""}]
        assert main(["leaderboard", ID, "--refresh", "--store", store.root]) == 0
        out = capsys.readouterr().out
        lines = [" ".join(line.split()) for line in out.splitlines()]
        assert "teams 1594 differs from the stored 1595" in lines
        assert f"bronze {scores[158]:.5f} differs from the stored 0.01526" in lines
        assert f"5 % {scores[80]:.5f} differs from the stored 0.00810" in lines
        assert "percentiles now: 1 of 21 as stored, to within two places" in lines, "the winner's"
        assert "1 team without a score, not counted" in out
        table = pd.read_parquet(store.local("tables", "leaderboards") / f"{ID}.parquet")
        assert table["score"].iloc[:1594].tolist() == [round(score, 5) for score in scores]
        assert table["score"].isna().sum() == 1
        stored = read_leaderboard(store, ID)
        assert stored is not None
        assert table.equals(stored)

    def test_a_leaderboard_that_lost_two_teams_is_the_same(self) -> None:
        facts = registry.get(ID).facts
        points = facts.leaderboard.percentiles or []
        scores = np.interp(np.linspace(0, 20, 1593), range(21), points)  # the stored ones, and what lies between
        figures = compare_percentiles([float(score) for score in scores], facts)
        assert [figure.name for figure in figures[:3]] == ["0 %", "5 %", "10 %"]
        assert all(figure.same for figure in figures)
        assert not any(figure.same for figure in compare_percentiles([99.0] * len(scores), facts))
        assert compare_percentiles([], facts) == []

    def test_what_cannot_be_had_is_one_line(
        self, kaggle: KaggleServer, store: Store, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["leaderboard", ID, "--refresh", "--store", store.root]) == 1
        assert "Kaggle shows no leaderboard" in capsys.readouterr().err
        assert main(["leaderboard", "digits", "--refresh", "--store", store.root]) == 2
        assert capsys.readouterr().err == "mlebench: digits: it is not on Kaggle, so there is nothing to refresh\n"


class TestGradingWithAFetchedLeaderboard:
    """On Kaggle all teams are so bad now that the sample submission wins gold."""

    @pytest.fixture
    def sample(self, prepared: PreparedCompetitions, store: Store) -> Path:
        leaf = prepared[ID]
        return copy_dataset(store, ID, leaf.path) / leaf.competition.facts.files.sample_submission

    @pytest.fixture
    def fetched(self, kaggle: KaggleServer, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
        kaggle.teams[ID] = [{"teamId": n, "teamName": f"team {n}", "score": f"{90 + n}"} for n in range(10)]
        assert main(["leaderboard", ID, "--refresh", "--store", store.root]) == 0
        capsys.readouterr()

    def test_none_was_fetched_is_one_line(
        self, sample: Path, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        refreshed = ["--leaderboard", "refreshed", "--store", store.root]
        command = f"mlebench leaderboard {ID} --refresh --store {store.local()}"
        advice = f"no leaderboard was fetched into {store.root}; run: {command}"
        assert main(["grade-sample", str(sample), ID, *refreshed]) == 1
        assert capsys.readouterr().err == f"mlebench: {ID}: {advice}\n"
        items = tmp_path / "items.jsonl"
        lines = [{"competition_id": name, "submission_path": str(sample)} for name in (ID, "digits")]
        items.write_text("\n".join(map(json.dumps, lines)))
        assert main(["grade", "--submission", str(items), "--output-dir", str(tmp_path), *refreshed]) == 1
        told = capsys.readouterr().err
        assert f"line 1: {ID}: {advice}" in told
        assert "line 2: digits is not on Kaggle and only has its stored leaderboard" in told

    @pytest.mark.usefixtures("fetched")
    def test_grade_and_grade_sample_say_which_was_used(
        self, sample: Path, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        where = ["--store", store.root]
        assert main(["grade-sample", str(sample), ID, *where]) == 0
        stored = json.loads(capsys.readouterr().out)
        assert "leaderboard" not in stored, "the published fields and no other"
        assert main(["grade-sample", str(sample), ID, "--leaderboard", "refreshed", *where]) == 0
        report = json.loads(capsys.readouterr().out)
        assert (stored["any_medal"], stored["gold_threshold"]) == (False, registry.get(ID).facts.leaderboard.gold)
        assert (report["gold_medal"], report["gold_threshold"], report["median_threshold"]) == (True, 90.0, 94.5)
        assert report["leaderboard"].startswith("refreshed 20")
        assert report["score"] == stored["score"]

        items = tmp_path / "items.jsonl"
        items.write_text(json.dumps({"competition_id": ID, "submission_path": str(sample)}))
        arguments = ["grade", "--submission", str(items), "--output-dir", str(tmp_path), "--leaderboard", "refreshed"]
        assert main([*arguments, *where]) == 0
        (path,) = tmp_path.glob("*_grading_report.json")
        summary = json.loads(path.read_text())
        assert summary["total_gold_medals"] == 1
        assert summary["competition_reports"][0]["leaderboard"] == report["leaderboard"]

    @pytest.mark.usefixtures("fetched")
    def test_regrade_and_the_deployed_grading_flow_record_it(
        self, sample: Path, store: Store, capsys: pytest.CaptureFixture[str]
    ) -> None:
        from flows.unattended import grading

        url = store.run("group", ID, 0)
        store.put(f"{url}/submission.csv", sample)
        store.write_json(f"{url}/run.json", run_record("group", ID))
        assert main(["regrade", "group", "--store", store.root]) == 0
        assert read_table(store, "grades")["leaderboard"].tolist() == ["stored"]
        assert main(["regrade", "group", "--leaderboard", "refreshed", "--store", store.root]) == 0
        assert "no medal -> " in capsys.readouterr().out
        grades = read_table(store, "grades")
        (board,) = grades["leaderboard"]
        assert board.startswith("refreshed 20")
        assert grades["gold_medal"].tolist() == [True]
        page = (store.local("reports", "group") / "report.html").read_text()
        assert board in page
        assert "<dt>gold</dt><dd>90</dd>" in page, "the bands are those that medals were decided on"

        assert [each.result for each in grading("group", "refreshed", store.root)] == ["reused"]
        assert [each.result for each in grading("group", store=store.root)] == ["done"]
        assert read_table(store, "grades")["leaderboard"].tolist() == ["stored"]
        store.remove(store.url("tables", "leaderboards"))
        with pytest.raises(UserError, match="no leaderboard was fetched"):
            grading("group", "refreshed", store.root)
