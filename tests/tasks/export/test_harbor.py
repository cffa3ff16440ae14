"""Tasks of Harbor: its own schema takes all of them, and its trial gives the oracle the highest rewards."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from pathlib import Path

import pytest
from click.testing import CliRunner

from competitions import registry
from grading.medals import Thresholds
from grading.report import competition_report
from storage.dataset import Dataset
from storage.datasets.current import make_current
from tasks.export import verifier
from tasks.export.harbor import HarborOptions, write_task
from tests import readers
from tests.prepared import PreparedCompetitions
from tests.sandbox.docker.conftest import base_image
from tests.stores import Store, put_dataset
from tests.tasks.export.groups import mlebench

__all__ = ["base_image"]

CHECK = """
import json, sys
from pathlib import Path
from harbor.models.task.task import Task
from harbor.models.task.verifier_mode import resolve_task_verifier_mode
found = {}
for path in map(Path, sys.argv[1:]):
    assert Task.is_valid_dir(path), path
    task = Task(path)
    config = task.config
    assert resolve_task_verifier_mode(config).value == "separate"
    assert config.model_fields_set >= {"schema_version", "task", "artifacts", "environment", "agent", "verifier"}
    assert config.verifier.environment.network_mode.value == "no-network"
    found[path.name] = [config.task.name, config.schema_version, task.instruction[:20], config.artifacts]
print(json.dumps(found))
"""
TRIAL = """
import asyncio, json, sys
from harbor.models.trial.config import TrialConfig
from harbor.trial.trial import Trial
task, trials, agent = sys.argv[1:]
config = TrialConfig.model_validate({
    "task": {"path": task}, "trials_dir": trials, "agent": {"name": agent},
    "environment": {"import_path": "plain_docker:PlainDocker"},
})
async def run():
    return await (await Trial.create(config)).run()
result = asyncio.run(run())
assert result.exception_info is None, result.exception_info
print(json.dumps(result.verifier_result.rewards))
"""


def all_competitions() -> list[str]:
    return sorted({name for split in ("low", "medium", "high", "dev", "demo") for name in registry.list(split)})


def put_marker(store: Store, competition_id: str) -> None:
    """A dataset without files."""
    dataset = Dataset("v1", competition_id, "k")
    store.write_json(f"{store.prepared(dataset)}/commit.json", {"key": "k"})
    make_current(store, dataset)


@pytest.mark.service("readers")
def test_every_competition_passes_harbors_own_schema(store: Store, tmp_path: Path) -> None:
    names = all_competitions()
    assert len(names) >= 82
    for name in names:
        put_marker(store, name)
        write_task(store, name, "v1", tmp_path / "tasks", HarborOptions())
    found = readers.read(CHECK, *sorted((tmp_path / "tasks").iterdir()))
    assert sorted(found) == names
    assert {tuple(each[3]) for each in found.values()} == {("/home/submission",)}
    assert all(each[:2] == [f"mle-bench/{name}", "1.4"] and each[2].strip() for name, each in found.items())


@pytest.fixture
def digits(store: Store) -> Store:
    put_dataset(store, "digits")
    return store


def export(store: Store, folder: Path, *options: str) -> Path:
    assert mlebench("export", "-c", "digits", "--format", "harbor", "--output-dir", folder, *options, store=store) == 0
    return folder / "digits"


def test_no_answers_are_in_a_task_unless_they_are_asked_for(digits: Store, tmp_path: Path) -> None:
    """Nor anywhere in what the agent's container is made of, whatever is asked for."""
    (prepared,) = digits.local("prepared", "v1", "digits").glob("*/private")
    answers = [path.read_bytes() for path in prepared.rglob("*") if path.is_file()]
    rows = {line for content in answers for line in content.splitlines()[1:6]}
    assert rows
    for options in ([], ["--oracle"], ["--data", "copy"], ["--data", "copy", "--oracle"]):
        task = export(digits, tmp_path / "-".join(["tasks", *options]), *options)
        has = {path.relative_to(task).parts[0] for path in task.rglob("*") if path.is_file() and _tells(path, rows)}
        expected = {"tests": "copy" in options, "solution": "--oracle" in options}
        assert has == {name for name, there in expected.items() if there}
        mounts = (task / "environment" / "docker-compose.yaml").read_text() if "copy" not in options else ""
        assert "private" not in mounts
        assert all(
            word not in path.read_text() for path in [task / "instruction.md"] for word in ("private", "/answers")
        )


def _tells(path: Path, rows: set[bytes]) -> bool:
    return bool(rows & set(path.read_bytes().splitlines()))


def test_copied_data_are_those_of_the_dataset(digits: Store, tmp_path: Path) -> None:
    task = export(digits, tmp_path, "--data", "copy")
    (public,) = digits.local("prepared", "v1", "digits").glob("*/public")
    expected = {path.relative_to(public): path.read_bytes() for path in public.rglob("*") if path.is_file()}
    copied = task / "environment" / "data"
    assert {path.relative_to(copied): path.read_bytes() for path in copied.rglob("*") if path.is_file()} == expected
    assert "COPY data /home/data" in (task / "environment" / "Dockerfile").read_text()


def test_what_cannot_be_exported_is_said_in_one_line(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store.require_usable()
    assert mlebench("export", "-c", "digits", "--format", "harbor", "--output-dir", tmp_path, store=store) == 1
    assert "is not prepared" in capsys.readouterr().err
    put_marker(store, "digits")
    export(store, tmp_path)
    assert mlebench("export", "-c", "digits", "--format", "harbor", "--output-dir", tmp_path, store=store) == 1
    assert "exists already" in capsys.readouterr().err
    for wrong in (["group", "--format", "harbor"], ["-c", "digits"], ["group", "-c", "digits"], ["--format", "atif"]):
        assert mlebench("export", *wrong, store=store) == 2


def test_rewards_are_medals_and_the_share_of_teams_beaten() -> None:
    facts = registry.get("leaf-classification").facts
    thresholds = Thresholds.of(facts)

    def rewards(score: float | None) -> dict[str, float]:
        report = competition_report(facts.id, score, thresholds, submission_path="x", submission_exists=True)
        return verifier.rewards_of(report, facts)

    best, median = rewards(0.0), rewards(thresholds.median)
    assert (best["reward"], best["gold_medal"], best["human_percentile"]) == (1.0, 1.0, 100.0)
    assert median["reward"] == 0.0
    assert 40 < median["human_percentile"] < 60
    assert median["dense_reward"] == pytest.approx(median["human_percentile"] / 100)
    assert rewards(None) == dict.fromkeys(set(best) - {"score"}, 0.0)
    assert rewards(float("nan"))["valid_submission"] == 1.0
    assert "score" not in rewards(float("nan"))


@pytest.mark.parametrize("name", ["leaf-classification", "spaceship-titanic"])
def test_the_verifier_gives_the_right_answers_the_highest_rewards(
    prepared: PreparedCompetitions, tmp_path: Path, name: str
) -> None:
    found, rewards = prepared[name], tmp_path / "reward.json"
    gold = found.path / found.competition.facts.files.gold_submission
    arguments = [name, "--edition", "v1", "--answers", found.path, "--submission", gold, "--rewards", rewards]
    result = CliRunner().invoke(verifier.main, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    content = json.loads(rewards.read_text())
    assert (content["reward"], content["gold_medal"]) == (1.0, 1.0)
    assert content.get("human_percentile", 100.0) == 100.0
    assert content["dense_reward"] > 0.95


@pytest.mark.service("readers")
@pytest.mark.service("docker")
def test_harbors_trial_of_the_oracle(digits: Store, tmp_path: Path, base_image: str) -> None:
    """A real trial in real containers: the oracle earns gold, doing nothing earns nothing, and no answers get close."""
    images = ["--agent-image", base_image, "--verifier-image", base_image]
    task = export(digits, tmp_path, "--oracle", *images)
    where = {"PYTHONPATH": str(Path(readers.__file__).parent), "MOUNTS": str(tmp_path / "mounts.jsonl")}
    where |= {"CHECKOUT": str(readers.ROOT), "PACKAGES": sysconfig.get_paths()["purelib"]}
    assert sys.version_info[:2] == (3, 11) or os.environ.get("CI") is None, "the base image's Python"
    rewards = {agent: readers.read(TRIAL, task, tmp_path / "trials", agent, **where) for agent in ("oracle", "nop")}
    assert rewards["oracle"]["reward"] == rewards["oracle"]["gold_medal"] == 1.0
    assert rewards["nop"]["reward"] == rewards["nop"]["valid_submission"] == 0.0
    mounts = [json.loads(line) for line in (tmp_path / "mounts.jsonl").read_text().splitlines()]
    assert [name for name, _ in mounts] == ["environment", "tests"] * 2
    (dataset,) = digits.local("prepared", "v1", "digits").glob("*/")
    for name, seen in mounts:
        prepared_mounts = [each for each in seen if str(dataset) in each[0]]
        part = {"environment": ["public", "/home/data"], "tests": ["private", "/answers/private"]}[name]
        assert prepared_mounts == [[f"{dataset}/{part[0]}", part[1]]]
