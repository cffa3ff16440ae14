"""Commands that talk to Kaggle: leaderboard, kernels, the official description, and downloads that cannot be had."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pandas as pd
import pytest

from competitions import registry
from flows.cli import main
from storage.materialise import materialise
from storage.prepared import local_part
from storage.sources.kaggle.leaderboard import read_leaderboard
from storage.sources.kaggle.notebook import plain_code
from storage.store import Store
from tests.kaggle_server import KaggleServer

ID = "leaf-classification"


def notebook(*cells: str) -> str:
    code = [{"cell_type": "code", "source": cell.splitlines(keepends=True), "outputs": []} for cell in cells]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": ["# Title"]}, *code], "nbformat": 4})


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
        assert "teams   1594.00000  differs from the stored 1595.00000" in out
        assert f"bronze  {scores[158]:.5f}  differs from the stored 0.01526" in out
        assert "1 teams have no score" in out
        table = pd.read_parquet(store.local("tables", "leaderboards") / f"{ID}.parquet")
        assert table["score"].iloc[:1594].tolist() == [round(score, 5) for score in scores]
        assert table["score"].isna().sum() == 1
        assert table.equals(read_leaderboard(store, ID))

    def test_what_cannot_be_had_is_one_line(
        self, kaggle: KaggleServer, store: Store, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["leaderboard", ID, "--refresh", "--store", store.root]) == 1
        assert "Kaggle shows no leaderboard" in capsys.readouterr().err
        assert main(["leaderboard", "digits", "--refresh", "--store", store.root]) == 1
        assert capsys.readouterr().err == "mlebench: digits is not on Kaggle: there is nothing to refresh\n"


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

    def test_none_is_one_line(self, kaggle: KaggleServer, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["kernels", ID, "--store", store.root]) == 1
        assert "shows no public notebooks" in capsys.readouterr().err

    def test_old_notebooks_and_scripts(self) -> None:
        old = {"worksheets": [{"cells": [{"cell_type": "code", "input": ["x = 1"]}]}]}
        assert plain_code(json.dumps(old)) == "x = 1"
        assert plain_code("x = {}") == "x = {}"
        assert plain_code("[1, 2]") == "[1, 2]"


class TestOfficialDescription:
    def prepared(self, store: Store, packs: Path) -> None:
        materialise(ID, str(packs / ID / "raw.zip"), store.prepared("v1", ID), key="key")

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
        ours = (store.local("prepared", "v1", ID) / "public" / "description.md").read_text()
        assert _official([ID, "digits"], store, "v1") == 0
        text = (store.local("prepared", "v1", ID) / "public" / "description_official.md").read_text()
        head, body = text.split("## Description", 1)
        for difference in (
            "new split",
            "random 10% of rows",
            "graded here",
            "no internet",
            "submission/submission.csv",
        ):
            assert difference in head
        assert "half a million species" in body
        assert body.index("half a million") < body.index("Log loss")
        assert "No sharing" not in text
        assert "It is over" not in text
        assert (store.local("prepared", "v1", ID) / "public" / "description.md").read_text() == ours

    def test_it_comes_along_from_an_object_store(self, described: KaggleServer, packs: Path, tmp_path: Path) -> None:
        from storage.sources.kaggle.pages import lay_official

        store = Store(f"memory://{tmp_path.name}")
        self.prepared(store, packs)
        official = local_part(store, ID, "v1", "public", tmp_path / "scratch") / "public" / "description_official.md"
        assert not official.exists()
        lay_official(store, registry.get(ID), "v1")
        local_part(store, ID, "v1", "public", tmp_path / "scratch")
        assert "half a million" in official.read_text()

    def test_a_competition_without_pages_does_not_stop_the_others(
        self, described: KaggleServer, store: Store, packs: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        from flows.commands.prepare import _official

        other = "spaceship-titanic"
        self.prepared(store, packs)
        materialise(other, str(packs / other / "raw.zip"), store.prepared("v1", other), key="key")
        assert _official([other, ID], store, "v1") == 1
        captured = capsys.readouterr()
        assert "Kaggle shows no description" in captured.err
        assert "description_official.md" in captured.out
