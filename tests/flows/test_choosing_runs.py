"""`mlebench run` with `--seed`, `--retry` and `--dry-run`: which runs are made, and which are left alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flows.cli import main
from storage.runs.evidence.manifest import read_manifest
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
    assert "diabetes: to be downloaded and prepared\n  seed 3: to be run\n  seed 5: to be run\n" in planned
    assert f"Run group {GROUP}: 2 runs to do, at most " in planned
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
    assert "seed 3: to be run again: it is crashed\n  seed 5: finished\n" in capfd.readouterr().out

    assert run(store, agent, *common, "--retry", "crashed,timeout") == 0
    assert statuses(store) == {3: "completed", 5: "completed"}
    assert RunFolder(store, GROUP, "diabetes", 5).read_run() == kept
    assert (tmp_path / "starts-diabetes").read_text().count("start") == 3
    grades = [json.loads(path.read_text())["outcome"] for path in store.local().glob("runs/*/*/*/grade.json")]
    assert grades == ["valid", "valid"]
    capfd.readouterr()
    assert main(["verify", GROUP, "--store", store.root]) == 0
    assert "diabetes/3: started 2 times, recorded 2 times" in capfd.readouterr().out


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
