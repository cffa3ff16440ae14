"""The file store of MLflow: its own client reads parameters, metrics over time and tags, and its tool migrates them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from competitions import registry
from storage.tables import read_table
from tasks.export.gathered import gather
from tasks.export.mlflow_store import write_runs
from tests import readers
from tests.stores import Store
from tests.tasks.export.groups import GROUP, asked, dataset, mlebench, once

__all__ = ["asked", "dataset", "once"]

READ = """
import json, subprocess, sys
from mlflow.tracking import MlflowClient
folder, database = sys.argv[1:]
def read(uri):
    client = MlflowClient(uri)
    (experiment,) = [each for each in client.search_experiments() if each.name != "Default"]
    runs = sorted(client.search_runs([experiment.experiment_id]), key=lambda run: run.info.run_name)
    return [experiment.name, [
        [
            run.info.run_name, run.info.status, run.info.end_time - run.info.start_time,
            run.data.params, run.data.metrics,
            [[each.step, each.value] for each in client.get_metric_history(run.info.run_id, "score")], run.data.tags,
        ]
        for run in runs
    ]]
found = read("file://" + folder)
best = MlflowClient("file://" + folder).search_runs(
    [each.experiment_id for each in MlflowClient("file://" + folder).search_experiments()],
    filter_string="metrics.any_medal = 1 and params.competition = 'diabetes'",
)
sys.argv[0] = "mlflow"
command = [sys.executable, "-m", "mlflow", "migrate-filestore", "--source", folder, "--target", "sqlite:///" + database]
subprocess.run(command, check=True, capture_output=True)
print(json.dumps([found, [run.info.run_name for run in best], read("sqlite:///" + database)]))
"""


STRANGE = 'a\N{GRINNING FACE}\x7f\x85\u2028\ufeff\\ud83d"b'


def test_its_files_are_yaml(asked: Store, tmp_path: Path) -> None:
    (series,) = gather(asked, GROUP)
    experiment = write_runs(replace(series, agent=STRANGE), tmp_path)
    assert yaml.safe_load((experiment / "meta.yaml").read_text("utf-8"))["name"] == f"{GROUP}/{STRANGE}/v1"


def test_a_run_or_snapshot_without_a_score_beats_nobody(asked: Store, tmp_path: Path) -> None:
    """A run without a submission counts 0, as in all statistics, where the competition has a leaderboard."""
    (series,) = gather(asked, GROUP)
    facts = registry.get(registry.list("low")[0]).facts
    assert facts.leaderboard.percentiles
    results = tuple(
        replace(each, facts=facts, snapshots=tuple(s.model_copy(update={"score": None}) for s in each.snapshots))
        for each in series.results
    )
    experiment = write_runs(replace(series, results=results), tmp_path)
    told = [path.read_text().splitlines() for path in sorted(experiment.glob("*/metrics/human_percentile"))]
    assert len(told) == 3
    without = [lines for lines in told if all(line.split()[1] == "0.0" for line in lines)]
    assert any(len(lines) == 1 for lines in without), "that of the run without a submission"
    first = next(lines for lines in told if len(lines) == 3)
    assert [line.split()[1] for line in first[:2]] == ["0.0", "0.0"]


@pytest.mark.service("readers")
def test_its_client_reads_the_runs_and_its_tool_migrates_them(asked: Store, tmp_path: Path) -> None:
    """Also those of an agent with a strange name."""
    (series,) = gather(asked, GROUP)
    folder = tmp_path / "mlruns"
    write_runs(replace(series, agent=STRANGE), folder)
    found, best, migrated = readers.read(READ, folder, tmp_path / "mlflow.db", MLFLOW_ALLOW_FILE_STORE="true")
    name, runs = found
    assert name == f"{GROUP}/{STRANGE}/v1"
    assert [run[:3] for run in runs] == [[f"diabetes-{seed}", "FINISHED", 60000] for seed in range(3)]
    first = runs[0]
    in_one_line = " ".join(STRANGE.split())
    conditions = {"competition": "diabetes", "seed": "0", "agent": in_one_line, "edition": "v1", "network": "gateway"}
    assert conditions.items() <= first[3].items()
    assert first[3]["time_limit_seconds"] == "600.0"
    grades = read_table(asked, "grades", [GROUP]).sort_values("seed")
    scores = grades["score"].tolist()
    snapshots = read_table(asked, "snapshots", [GROUP]).sort_values("at_seconds")["score"].tolist()
    assert first[5] == [[15, snapshots[0]], [40, snapshots[1]], [60, scores[0]]]
    assert first[4]["score"] == scores[0]
    assert first[4]["gold_threshold"] == grades["gold_threshold"].iloc[0]
    assert [run[4]["any_medal"] for run in runs] == grades["any_medal"].astype(float).tolist()
    assert "score" not in runs[2][4], "a run without a submission has none"
    assert runs[2][6]["outcome"] == "missing"
    assert best == ["diabetes-0"]
    assert migrated == found


def test_an_experiment_is_not_written_twice(asked: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("export", GROUP, "--format", "mlflow", "--output-dir", tmp_path / "mlruns")
    assert mlebench(*arguments, store=asked) == 0
    assert mlebench(*arguments, store=asked) == 1
    assert "exists already; remove it, or export into another directory" in capsys.readouterr().err
