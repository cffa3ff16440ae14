"""`mlebench kernels`: public notebooks as plain code, and recorded sets that can be fetched again."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from competitions import registry
from flows.cli import main
from storage.notebooks import plain_code
from tests.kaggle_server import KaggleServer
from tests.stores import Store

ID = "leaf-classification"


def notebook(*cells: str) -> str:
    code = [{"cell_type": "code", "source": cell.splitlines(keepends=True), "outputs": []} for cell in cells]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": ["# Title"]}, *code], "nbformat": 4})


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
        assert main(["kernels", ID, "--top", "1", "--json", "--store", store.root]) == 0
        pulled = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert pulled == [{"competition_id": ID, "votes": 90, "notebook": "ann/best"}]

    def test_of_several_competitions_one_that_fails_does_not_stop_the_others(
        self, public: KaggleServer, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        other = next(name for name in registry.list("low") if name != ID)
        (tmp_path / "ids.txt").write_text(f"{other}\n{ID}\n")
        assert main(["kernels", "--list", str(tmp_path / "ids.txt"), "--max-kernels", "1", "--store", store.root]) == 1
        captured = capsys.readouterr()
        assert f"{other}: Kaggle shows no public notebooks" in captured.err
        assert "1 notebook in" in captured.out
        assert main(["kernels", "--store", store.root]) == 2
        assert "name competitions" in capsys.readouterr().err

    def test_all_competitions_at_once_with_their_references(
        self, public: KaggleServer, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        names = registry.list("all")
        for name in names:
            public.kernels[name] = public.kernels[ID]
        written = tmp_path / "references.csv"
        arguments = ["--max-kernels", "1", "--write-references", str(written), "--store", store.root]
        assert main(["kernels", "--all", *arguments]) == 0
        references = pd.read_csv(written)
        assert sorted(references["competition_id"]) == sorted(names)
        assert set(references["ref"]) == {"ann/best"}
        assert capsys.readouterr().out.count("1 notebook in") == len(names) == 75

    def test_a_recorded_set_can_be_fetched_again(
        self, public: KaggleServer, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        references = str(tmp_path / "references.csv")
        assert main(["kernels", ID, "--top", "3", "--write-references", references, "--store", store.root]) == 0
        assert "2 references in" in capsys.readouterr().out
        before = {path.name: path.read_bytes() for path in store.local("kernels", ID).glob("*.py")}
        # Later, there is a better one, one has a new version, and votes have changed.
        public.kernels[ID] = [{"ref": "eve/new", "title": "", "author": "eve", "totalVotes": 99}]
        public.sources |= {"eve/new": "pass", "ann/best@3": public.sources["ann/best"], "ann/best": "print(4)"}
        public.versions["ann/best"] = 4
        assert main(["kernels", ID, "--store", store.root]) == 0
        assert main(["kernels", "--references", references, "--store", store.root]) == 0
        assert {path.name: path.read_bytes() for path in store.local("kernels", ID).glob("*.py")} == before
        index = pd.read_parquet(store.local("kernels", ID) / "index.parquet")
        assert index[["ref", "votes", "version"]].to_numpy().tolist() == [["ann/best", 90, 3], ["cid/third", 50, 3]]

        capsys.readouterr()
        del public.sources["ann/best@3"], public.sources["cid/third"]
        assert main(["kernels", ID, "--references", references, "--store", store.root]) == 1
        captured = capsys.readouterr()
        assert "ann/best: has other code now (version 4) than was recorded (3)" in captured.err
        assert "cid/third: Kaggle refuses it" in captured.err
        assert ", 2 not as recorded" in captured.out

    @pytest.mark.parametrize(
        "text", ["", "ref\nann/best\n", "competition_id,ref,version,votes,sha256\nx,ann,,,\n", "\0", None]
    )
    def test_what_is_no_file_of_references_is_one_line(
        self, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None
    ) -> None:
        path = tmp_path / "references.csv"
        if text is not None:
            path.write_text(text)
        assert main(["kernels", "--references", str(path), "--store", store.root]) == 1
        err = capsys.readouterr().err
        assert str(path) in err
        assert len(err.splitlines()) == 1

    def test_none_is_one_line(self, kaggle: KaggleServer, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["kernels", ID, "--store", store.root]) == 1
        assert "shows no public notebooks" in capsys.readouterr().err

    def test_old_notebooks_and_scripts(self) -> None:
        old = {"worksheets": [{"cells": [{"cell_type": "code", "input": ["x = 1"]}]}]}
        assert plain_code(json.dumps(old)) == "x = 1"
        assert plain_code("x = {}") == "x = {}"
        assert plain_code("[1, 2]") == "[1, 2]"
