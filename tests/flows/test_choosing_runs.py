"""`mlebench run` with `--seed`, `--retry` and `--dry-run`: which runs are made, and which are left alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from common.settings import get_settings
from competitions import registry
from flows.cli import main
from storage.runs.evidence.group_manifest import read_manifest
from storage.runs.folders import RunFolder, stored_runs
from tests.agents import noting, write_agent
from tests.stores import Store

GROUP = "chosen"


def run(store: Store, agent: Path, *more: str) -> int:
    return main(["run", "-c", "diabetes", "--agent", str(agent), "--run-group", GROUP, "--store", store.root, *more])


def statuses(store: Store) -> dict[int, str | None]:
    return {each.record.seed: each.record.status for each in stored_runs(store, GROUP)}


def test_seeds_are_chosen_and_crashed_runs_are_made_again(
    store: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "crash").touch()
    script = f"[ $SEED = 5 ] || [ ! -e {tmp_path}/crash ] || exit 3\n"
    agent = write_agent(tmp_path / "recovers", noting(tmp_path, script))
    common = ["--seed", "5", "--seed", "3"]

    assert run(store, agent, *common, "--dry-run") == 0
    planned = capfd.readouterr().out
    assert "diabetes: to be prepared, from bundled data\n  seed 3: to be run\n  seed 5: to be run\n" in planned
    assert f"Run group {GROUP}: 2 runs to do\nTime: at most " in planned
    assert "Cost: nothing for language models" in planned
    assert not store.local().exists() or not list(store.local().rglob("*.json")), "it changes nothing"

    assert run(store, agent, *common) == 0, "one run crashed, and one did not"
    assert statuses(store) == {3: "crashed", 5: "completed"}
    assert read_manifest(store, GROUP, None).planned() == {"diabetes/3", "diabetes/5"}
    kept = RunFolder(store, GROUP, "diabetes", 5).read_run()

    (tmp_path / "crash").unlink()
    assert run(store, agent, *common) == 0
    assert statuses(store)[3] == "crashed", "finished runs are not made again without a word"
    capfd.readouterr()
    assert run(store, agent, *common, "--retry", "crashed,timeout", "--dry-run") == 0
    planned = capfd.readouterr().out
    assert (
        "diabetes: prepared already, to be reused\n  seed 3: to be run again: it is crashed\n  seed 5: finished\n"
        in planned
    )
    assert f"Run group {GROUP}: 1 run to do, 1 finished\n" in planned
    assert "On average, the 2 finished runs of this group took" in planned

    assert run(store, agent, *common, "--retry", "crashed,timeout") == 0
    assert statuses(store) == {3: "completed", 5: "completed"}
    assert RunFolder(store, GROUP, "diabetes", 5).read_run() == kept
    assert (tmp_path / "starts-diabetes").read_text().count("start") == 3
    grades = [json.loads(path.read_text())["outcome"] for path in store.local().glob("runs/*/*/*/grade.json")]
    assert grades == ["valid", "valid"]
    capfd.readouterr()
    assert main(["verify", GROUP, "--store", store.root]) == 0
    assert "diabetes/3: started 2 times, recorded 2 times" in capfd.readouterr().out


def test_a_plan_tells_the_download_the_longest_time_and_the_most_that_it_costs(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLEBENCH_PROVIDERS__OPENAI__BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("MLEBENCH_AGENTS", "2")
    monkeypatch.setenv("KAGGLE_API_TOKEN", "unused")
    get_settings.cache_clear()
    agent = write_agent(tmp_path / "mine", "exit 0\n")
    command = ["run", "-c", "spaceship-titanic", "-c", "digits", "--agent", str(agent), "--seeds", "2", "--time-limit"]
    command += ["3600", "--dry-run", "--store", store.root]
    assert main(command) == 0
    planned = capfd.readouterr().out
    assert "spaceship-titanic: to be downloaded (" in planned
    assert "Time: at most 1 hour each, 2 at the same time, so at most 2 hours for the agents" in planned
    assert "Cost: no limit in dollars for language models: MLEBENCH_LLM_DOLLARS" in planned

    monkeypatch.setenv("MLEBENCH_LLM_DOLLARS", "2.5")
    get_settings.cache_clear()
    assert main(command) == 0
    assert "Cost: at most $2.50 each for language models, so at most $10.00\n" in capfd.readouterr().out
    assert main([*command, "--json"]) == 0
    plan = json.loads(capfd.readouterr().out)
    assert (plan["runs_to_do"], plan["seconds_at_most"], plan["dollars_at_most"]) == (4, 7200, 10.0)
    assert plan["download_bytes"] == registry.get("spaceship-titanic").facts.size_bytes
    assert {each["state"] for each in plan["runs"]} == {"to be run"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--retry", "crashed"], "--retry needs the name of the group"),
        (["--retry", "unlucky", "--run-group", "g"], "'unlucky' is not one of crashed, timeout"),
        (["--seed", "1", "--seeds", "3"], "--seed and --seeds are alternatives"),
    ],
)
def test_wrong_choices_are_refused(capfd: pytest.CaptureFixture[str], options: list[str], says: str) -> None:
    assert main(["run", "-c", "digits", *options]) == 2
    assert says in " ".join(capfd.readouterr().err.split())


def test_the_help_groups_the_options(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--help"]) == 0
    text = capfd.readouterr().out
    titles = [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert titles == [
        "Competitions:",
        "Agent and runs:",
        "Machines:",
        "Isolation:",
        "Preparing:",
        "Store:",
        "Other options:",
    ]
    assert text.index("--pool") > text.index("Machines:") > text.index("--retry") > text.index("Agent and runs:")
