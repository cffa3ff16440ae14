"""`mlebench plagiarism` on a store with pulled notebooks and two agents' runs."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from common.settings import get_settings
from flows.cli import main
from storage.tables import read_table
from tests.grading.integrity.copies import everything, read
from tests.stores import Store

COMPETITION = "spaceship-titanic"


def add_run(
    store: Store, group: str, agent: str, code: dict[str, str], logs: dict[str, str] | None = None, seed: int = 0
) -> None:
    url = store.run(group, COMPETITION, seed)
    for part, files in (("code", code), ("logs", logs or {})):
        for name, text in files.items():
            store.write(f"{url}/{part}/{name}", text.encode())
    record: dict[str, object] = {"run_group": group, "run_id": f"{group}-{COMPETITION}-{seed}"}
    record |= {"competition_id": COMPETITION}
    record |= {"seed": seed, "agent": agent, "edition": "v1", "key": "k", "status": "completed"}
    store.write_json(f"{url}/run.json", record | {"submission_exists": True})


@pytest.fixture
def kernels(store: Store) -> Store:
    rows = []
    for name in ("kernel_gbm", "kernel_text"):
        path = f"someone--{name}.py"
        store.write(store.url("kernels", COMPETITION, path), read(name).encode())
        rows.append({"ref": f"someone/{name}", "path": path, "url": f"https://example.org/{name}"})
    folder = store.local("kernels", COMPETITION)
    pd.DataFrame(rows).to_parquet(Path(str(folder)) / "index.parquet")
    return store


def notebook(code: str) -> str:
    cells = [{"cell_type": "code", "source": cell} for cell in code.split("# %%\n")]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": "# Mine"}, *cells], "nbformat": 4})


def run(store: Store, *arguments: str, capfd: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    capfd.readouterr()
    code = main(["examine", "--only", "plagiarism", *arguments, "--store", store.root])
    return code, *capfd.readouterr()


def test_a_disguised_notebook_is_found_and_shown_side_by_side(
    kernels: Store, capfd: pytest.CaptureFixture[str]
) -> None:
    add_run(
        kernels, "g", "thief", {"solution.ipynb": notebook(read("kernel_gbm")), "b.py": everything(read("kernel_text"))}
    )
    code, out, _ = run(kernels, "g", capfd=capfd)
    assert code == 0
    assert "solution.ipynb ~ kernel someone/kernel_gbm" in out
    assert "b.py ~ kernel someone/kernel_text" in out
    assert out.splitlines()[-1] == "1 run compared, 2 pairs with something in common, 2 to look at"
    row = read_table(kernels, "plagiarism", ["g"]).set_index("file").to_dict("index")["solution.ipynb"]
    assert row["similarity"] > 0.95
    assert row["url"] == "https://example.org/kernel_gbm"
    fragment = json.loads(row["matched"])[0]
    assert fragment["file_text"].split("\n")[0].strip() in read("kernel_gbm")
    assert fragment["other_text"].split("\n")[0].strip() in read("kernel_gbm")


def test_honest_code_makes_no_noise(kernels: Store, capfd: pytest.CaptureFixture[str]) -> None:
    add_run(kernels, "g", "honest", {"main.py": read("honest_gbm"), "notes.txt": read("kernel_gbm")})
    assert "0 to look at" in run(kernels, "g", capfd=capfd)[1]


def test_another_agents_run_is_a_source_and_the_same_agents_is_not(
    store: Store, capfd: pytest.CaptureFixture[str]
) -> None:
    add_run(store, "first", "author", {"main.py": read("honest_cnn")})
    add_run(store, "second", "thief", {"train.py": read("honest_cnn")})
    add_run(store, "third", "author", {"main.py": read("honest_cnn")})
    _, out, err = run(store, "second", "--against", "first", capfd=capfd)
    assert f"train.py ~ run first/{COMPETITION}/0/main.py" in out
    assert "third" not in out
    assert f"mlebench kernels {COMPETITION}" in err
    _, out, _ = run(store, "third", "--against", "first", capfd=capfd)
    assert "0 to look at" in out


def test_an_unknown_group_is_one_line(store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    store.require_usable()
    code, _, err = run(store, "nobody", capfd=capfd)
    assert (code, err.count("\n")) == (1, 1)
    assert "no finished runs of group 'nobody'" in err


def test_a_notebook_that_the_agent_ships_in_its_own_folder_is_found(
    kernels: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "agents" / "shipper"
    folder.mkdir(parents=True)
    (folder / "agent.yaml").write_text("name: shipper\ndescription: brings its solution along\ntrusted: true\n")
    (folder / "start.sh").write_text("#!/bin/bash\n")
    (folder / "solution.py").write_text(read("kernel_gbm"))
    monkeypatch.setenv("MLEBENCH_AGENT_DIRS", str(folder.parent))
    get_settings.cache_clear()
    add_run(kernels, "g", "shipper", {"solution.py": read("kernel_gbm"), "own.py": read("own_code")})
    out = run(kernels, "g", capfd=capfd)[1]
    assert "solution.py ~ kernel someone/kernel_gbm" in out
    assert "agent folder: solution.py ~ kernel someone/kernel_gbm" in out
    assert "own.py" not in out
