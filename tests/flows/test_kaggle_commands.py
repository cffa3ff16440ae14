"""Commands that talk to Kaggle: leaderboard, kernels, the official description, and downloads that cannot be had."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from common.errors import UserError
from competitions import fingerprints, registry
from flows.cli import main
from flows.forms import Archives
from flows.unattended import preparation
from grading.leaderboards import compare_percentiles
from storage.cache import Cache
from storage.dataset import Dataset
from storage.datasets.prepared import committed_key, local_copy
from storage.notebooks import plain_code
from storage.sources.kaggle.leaderboard import read_leaderboard
from storage.store import Store as AnyStore
from storage.tables import read_table
from tests.kaggle_server import KaggleServer
from tests.prepared import PreparedCompetitions
from tests.stores import Store, put_dataset

ID = "leaf-classification"


def notebook(*cells: str) -> str:
    code = [{"cell_type": "code", "source": cell.splitlines(keepends=True), "outputs": []} for cell in cells]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": ["# Title"]}, *code], "nbformat": 4})


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
        assert "top of the teams now: 1 of 21 the same to within two places" in lines, "the winner's"
        assert "1 teams have no score" in out
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
        assert main(["leaderboard", "digits", "--refresh", "--store", store.root]) == 1
        assert capsys.readouterr().err == "mlebench: digits is not on Kaggle: there is nothing to refresh\n"


class TestGradingWithAFetchedLeaderboard:
    """On Kaggle all teams are so bad now that the sample submission wins gold."""

    @pytest.fixture
    def sample(self, prepared: PreparedCompetitions, store: Store) -> Path:
        leaf = prepared[ID]
        shutil.copytree(leaf.path, store.local("prepared", "v1", ID))
        return store.local("prepared", "v1", ID) / leaf.competition.facts.files.sample_submission

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


class TestKernels:
    @pytest.fixture
    def public(self, kaggle: KaggleServer) -> KaggleServer:
        votes = {"ann/best": 90, "bob/gone": 70, "cid/third": 50, "../../evil": 40, "dee/last": 1}
        kaggle.kernels[ID] = [
            {"ref": ref, "title": ref, "author": ref.split("/")[0], "totalVotes": count} for ref, count in votes.items()
        ]
        kaggle.sources = {
            "ann/best": notebook("%matplotlib inline\nimport numpy\n!pip install x", "%%bash\nls", "y = 7 \\\n % 2"),
            "cid/third": "print('a script')",
            "../../evil": "pass",
            "dee/last": "pass",
        }
        return kaggle

    def test_the_most_voted_are_kept_as_plain_code(
        self, public: KaggleServer, store: Store, capsys: pytest.CaptureFixture[str]
    ) -> None:
        stray = store.url("kernels", ID, "of-an-earlier-pull.py")
        store.write(stray, b"")
        assert main(["kernels", ID, "--top", "4", "--store", store.root]) == 0
        captured = capsys.readouterr()
        assert "bob/gone: Kaggle refuses it" in captured.err
        assert "90 votes  ann/best" in captured.out
        index = pd.read_parquet(store.local("kernels", ID) / "index.parquet")
        assert index["ref"].tolist() == ["ann/best", "cid/third", "../../evil"]
        assert index["votes"].tolist() == [90, 50, 40]
        assert index["fetched_at"].notna().all()
        folder = store.local("kernels", ID)
        assert {path.name for path in folder.iterdir()} == {"index.parquet", *index["path"]}
        code = (folder / index["path"][0]).read_text()
        assert code == "# %matplotlib inline\nimport numpy\n# !pip install x\n\n# %%bash\n# ls\n\ny = 7 \\\n % 2"
        compile(code, "kernel", "exec")

    def test_of_several_competitions_one_that_fails_does_not_stop_the_others(
        self, public: KaggleServer, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        other = next(name for name in registry.list("low") if name != ID)
        (tmp_path / "ids.txt").write_text(f"{other}\n{ID}\n")
        assert main(["kernels", "--list", str(tmp_path / "ids.txt"), "--max-kernels", "1", "--store", store.root]) == 1
        captured = capsys.readouterr()
        assert f"{other}: Kaggle shows no public notebooks" in captured.err
        assert "1 notebook in" in captured.out
        assert main(["kernels", "--store", store.root]) == 1
        assert "name a competition" in capsys.readouterr().err

    def test_none_is_one_line(self, kaggle: KaggleServer, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["kernels", ID, "--store", store.root]) == 1
        assert "shows no public notebooks" in capsys.readouterr().err

    def test_old_notebooks_and_scripts(self) -> None:
        old = {"worksheets": [{"cells": [{"cell_type": "code", "input": ["x = 1"]}]}]}
        assert plain_code(json.dumps(old)) == "x = 1"
        assert plain_code("x = {}") == "x = {}"
        assert plain_code("[1, 2]") == "[1, 2]"


class TestOtherCode:
    def test_a_dataset_whose_download_is_gone_is_used_until_the_operator_decides(
        self, kaggle: KaggleServer, store: Store, packs: Path, capfd: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:  # fmt: skip
        kaggle.archives[ID] = (packs / ID / "raw.zip").read_bytes()
        arguments = ["prepare", "-c", ID, "--store", store.root]
        # The miniature has other checksums than the real data.
        assert main([*arguments, "--skip-verification"]) == 0
        dataset = Dataset("v1", ID)
        key = committed_key(store, dataset)
        store.remove(store.raw(ID))
        files = sorted(store.local("prepared").rglob("*.*"))
        capfd.readouterr()

        monkeypatch.setattr(fingerprints, "_version", lambda _: "another version")
        monkeypatch.setattr("tasks.split._code", lambda _: "")  # the workers have the true version
        assert main([*arguments, "--skip-verification"]) == 0
        output = capfd.readouterr().out
        assert "1 reused" in output
        assert f"1 prepared by other code, used as they are: {ID} (v1)" in output
        assert len(kaggle.asked("api", "DownloadDataFiles")) == 1

        assert main([*arguments, "--skip-verification", "--renew"]) == 0
        assert len(kaggle.asked("api", "DownloadDataFiles")) == 2
        assert "prepared by other code" not in capfd.readouterr().out
        assert committed_key(store, dataset) == key
        assert sorted(store.local("prepared").rglob("*.*")) == files, "nothing is made again"
        assert main([*arguments, "--skip-verification", "--renew"]) == 0
        assert len(kaggle.asked("api", "DownloadDataFiles")) == 2, "it is known now"

        monkeypatch.setattr(fingerprints, "_version", lambda _: "a third version")
        store.remove(store.raw(ID))
        preparation(competition_ids=[ID], store=store.root, archives=Archives(skip_verification=True))
        assert len(kaggle.asked("api", "DownloadDataFiles")) == 2
        renewing = Archives(skip_verification=True, renew=True)
        preparation(competition_ids=[ID], store=store.root, archives=renewing)
        assert len(kaggle.asked("api", "DownloadDataFiles")) == 3, "a deployed flow can be told to as well"
        assert committed_key(store, dataset) == key


class TestOfficialDescription:
    def prepared(self, store: AnyStore, packs: Path) -> None:
        put_dataset(store, ID, packs / ID / "raw.zip")

    @pytest.fixture
    def described(self, kaggle: KaggleServer) -> KaggleServer:
        kaggle.pages[ID] = [
            {"name": "rules", "content": "No sharing."},
            {"name": "Evaluation", "content": "<p>Log loss.</p>"},
            {"name": "Description", "content": "There are half a million species of plant."},
            {"name": "Timeline", "content": "It is over."},
        ]
        return kaggle

    def test_it_lies_beside_ours_and_says_what_differs(
        self, described: KaggleServer, store: Store, packs: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        from flows.commands.prepare import _official

        self.prepared(store, packs)
        ours = store.local("prepared", "v1", ID, "k", "public", "description.md").read_text()
        assert _official([ID, "digits"], store, "v1") == 0
        text = store.local("prepared", "v1", ID, "k", "public", "description_official.md").read_text()
        head, body = text.split("## Description", 1)
        for difference in (
            "new split",
            "random 10% of rows",
            "graded on this benchmark",
            "no internet",
            "submission/submission.csv",
        ):
            assert difference in head
        assert "half a million species" in body
        assert body.index("half a million") < body.index("Log loss")
        assert "No sharing" not in text
        assert "It is over" not in text
        assert store.local("prepared", "v1", ID, "k", "public", "description.md").read_text() == ours

    def test_asked_for_on_the_command_line(
        self, described: KaggleServer, store: Store, packs: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        described.archives[ID] = (packs / ID / "raw.zip").read_bytes()
        arguments = ["prepare", "-c", ID, "--skip-verification", "--store", store.root]
        assert main(arguments) == 0
        public = store.local("prepared", "v1", ID, str(committed_key(store, Dataset("v1", ID))), "public")
        assert not (public / "description_official.md").exists(), "ours is the default"
        assert not described.asked("api", "ListCompetitionPages")
        ours = (public / "description.md").read_text()

        assert main([*arguments, "--official-description"]) == 0
        assert "description_official.md" in capfd.readouterr().out
        text = (public / "description_official.md").read_text()
        head, body = text.split("## Description", 1)
        assert "Differences in this benchmark" in head
        assert "half a million species" in body
        assert (public / "description.md").read_text() == ours == registry.get(ID).description
        assert len(described.asked("api", "DownloadDataFiles")) == 1, "what is prepared is not fetched again"

    def test_it_comes_along_from_an_object_store(self, described: KaggleServer, packs: Path, tmp_path: Path) -> None:
        from storage.sources.kaggle.pages import write_official_description

        store = AnyStore(f"memory://{tmp_path.name}")
        self.prepared(store, packs)
        dataset, cache = Dataset("v1", ID, "k"), Cache(tmp_path / "cache", limit=10**9)
        with local_copy(store, dataset, "public", cache) as folder:
            assert not (folder / "public" / "description_official.md").exists()
        write_official_description(store, dataset, registry.get(ID))
        with local_copy(store, dataset, "public", cache) as folder:
            assert "half a million" in (folder / "public" / "description_official.md").read_text()

    def test_a_competition_without_pages_does_not_stop_the_others(
        self, described: KaggleServer, store: Store, packs: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        from flows.commands.prepare import _official

        other = "spaceship-titanic"
        self.prepared(store, packs)
        put_dataset(store, other, packs / other / "raw.zip")
        assert _official([other, ID], store, "v1") == 1
        captured = capsys.readouterr()
        assert "Kaggle shows no description" in captured.err
        assert "description_official.md" in captured.out
