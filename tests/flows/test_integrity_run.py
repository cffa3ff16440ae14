"""`mlebench run --obfuscated --integrity`: what the agent sees, and what is recorded and reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from competitions import registry
from flows.cli import main
from flows.full_benchmark import full_benchmark
from sandbox.backend import RunSpec
from sandbox.limits import Limits
from storage.dataset import Dataset
from storage.datasets.current import require
from storage.tables import read_table
from tasks.wiring.requests import RunRequest
from tests.stores import Store

LOOK = """#!/bin/bash
cp "$DATA_DIR/description.md" "$INSTRUCTIONS_FILE" "$LOGS_DIR/"
env > "$LOGS_DIR/environment"
cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"
echo "import requests" > "$CODE_DIR/main.py"
"""


@pytest.fixture
def agent(tmp_path: Path) -> str:
    folder = tmp_path / "looks"
    folder.mkdir()
    (folder / "agent.yaml").write_text("name: looks\ndescription: looks about\ntrusted: true\n")
    (folder / "start.sh").write_text(LOOK)
    return str(folder)


def test_an_obfuscated_run_does_not_learn_its_competition(store: Store, agent: str) -> None:
    full_benchmark(
        ["breast-cancer"], RunRequest(agent=agent, run_group="g", store=store.root, obfuscated=True, examine=True)
    )
    run = Path(str(store.local("runs", "g", "breast-cancer", 0)))
    competition = registry.get("breast-cancer")
    assert (run / "logs" / "description.md").read_text() == competition.obfuscated_description
    for name in ("instructions.txt", "environment"):
        assert "breast-cancer" not in (run / "logs" / name).read_text()
    record = json.loads((run / "run.json").read_text())
    assert record["obfuscated"] is True
    assert read_table(store, "runs")["obfuscated"].tolist() == [True]
    dataset = require(store, Dataset("v1", "breast-cancer"))
    prepared = Path(str(store.local(store.relative(store.prepared(dataset)), "public")))
    assert (prepared / "description.md").read_text() == competition.description, "the data stay as they are"

    assert read_table(store, "violations")["rule"].tolist() == ["network", "no-model"]
    page = (Path(str(store.local("reports", "g"))) / "report.html").read_text()
    assert "Obfuscated" in page
    assert "imports requests" in page

    again = full_benchmark(["breast-cancer"], RunRequest(agent=agent, run_group="g", store=store.root, obfuscated=True))
    assert {each.result for each in again} == {"reused"}
    plain = full_benchmark(["breast-cancer"], RunRequest(agent=agent, run_group="g", store=store.root, overwrite=True))
    assert [each.result for each in plain] == ["reused", "done"], "another run than the one that was not told"
    replaced = run / json.loads((run / "run.json").read_text())["files"]
    assert (replaced / "logs" / "description.md").read_text() == competition.description


def test_a_competition_without_such_a_description_is_told_at_once(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from common.settings import get_settings

    assert main(["new", "mine", "--into", str(tmp_path / "own")]) == 0
    monkeypatch.setenv("MLEBENCH_COMPETITIONS", str(tmp_path / "own"))
    get_settings.cache_clear()
    capfd.readouterr()
    assert main(["run", "-c", "mine", "--obfuscated", "--store", store.root]) == 1
    err = capfd.readouterr().err
    assert "mine has no obfuscated description: write" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(("obfuscated", "mounted"), [(False, ["description.md"]), (True, [])])
def test_in_containers_the_description_is_mounted_over_the_data(
    tmp_path: Path, obfuscated: bool, mounted: list[str]
) -> None:
    """Without an engine: what would be mounted. An obfuscated run has a copy of the data, with its own description."""
    from sandbox.agent_registry import load_agent
    from sandbox.confinement.world import HOME
    from sandbox.docker.containers import ContainerConfig, options
    from sandbox.docker.engines import Engine
    from sandbox.world.layout import lay_out

    data = tmp_path / "prepared" / "public"
    data.mkdir(parents=True)
    (data / "description.md").write_text("# Titanic\n")
    (data / "description_official.md").write_text("# The titanic, as Kaggle tells it\n")
    limits, agent, workdir = Limits(time_limit_seconds=1), load_agent("dummy"), tmp_path / "w"
    spec = RunSpec("r", "titanic", 0, agent, data, workdir, limits, description="# A ship\n", obfuscated=obfuscated)
    home = workdir / "home"
    lay_out(spec, home, HOME, with_data=False)
    image = type("Image", (), {"id": "1", "attrs": {"Config": {}}})
    made = options(spec, ContainerConfig(image, Engine(), "gateway"), home=home, command=[], labels={})
    mounts = [each for each in made["mounts"] if each["Target"].startswith(f"{HOME}/data/")]
    assert [each["Target"].rsplit("/", 1)[1] for each in mounts] == mounted
    assert all(each["ReadOnly"] and Path(each["Source"]).read_text() == "# A ship\n" for each in mounts)
    assert ("titanic" in (home / "instructions.txt").read_text()) != obfuscated
    assert made["environment"]["COMPETITION_ID"] == ("competition" if obfuscated else "titanic")


def test_the_original_description_is_replaced_too_and_the_prepared_files_are_not(tmp_path: Path) -> None:
    from sandbox.agent_registry import load_agent
    from sandbox.world.layout import lay_out

    data = tmp_path / "prepared" / "public"
    data.mkdir(parents=True)
    for name in ("description.md", "description_official.md"):
        (data / name).write_text("# Titanic\n")
    limits = Limits(time_limit_seconds=1)
    spec = RunSpec(
        "r", "titanic", 0, load_agent("dummy"), data, tmp_path / "w", limits, description="# A ship\n", obfuscated=True
    )
    lay_out(spec, tmp_path / "w" / "home")
    given = {path.name: path.read_text() for path in (tmp_path / "w" / "home" / "data").iterdir()}
    assert given == {"description.md": "# A ship\n", "description_official.md": "# A ship\n"}
    assert {path.read_text() for path in data.iterdir()} == {"# Titanic\n"}


def test_a_check_that_cannot_be_made_fails_by_itself(store: Store, agent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from common.settings import get_settings
    from flows.watching.outcome import PartlyFailed

    monkeypatch.setenv("MLEBENCH_INTEGRITY_MODEL", "nobody-serves-it")
    get_settings.cache_clear()
    with pytest.raises(PartlyFailed) as caught:
        full_benchmark(["diabetes"], RunRequest(agent=agent, run_group="g", store=store.root, examine=True))
    results = {each.what: each.result for each in caught.value.outcomes}
    assert results.pop("violations g") == "failed"
    assert set(results.values()) == {"done"}
    assert store.exists(store.url("reports", "g", "report.html"))
