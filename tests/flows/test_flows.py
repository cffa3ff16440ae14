"""The flows on a real Prefect server: what is done is reused, what fails stops nothing else, tables tell the truth."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from prefect import flow_engine
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey

from common.progress import Event, listening
from competitions import registry
from flows.cli import main
from flows.diagnosis.zombies import HEARTBEAT
from flows.full_benchmark import full_benchmark
from flows.prepare import prepare
from flows.watching.outcome import Outcome, PartlyFailed
from storage import datasets
from storage.dataset import Dataset
from storage.datasets.cluster import DaskExecutor
from storage.datasets.current import require
from storage.tables import read_table
from tasks.wiring.requests import RunRequest
from tests.stores import Store


def results(outcomes: Iterable[Outcome]) -> dict[str, str]:
    return {each.what: each.result for each in outcomes}


def test_the_whole_way_from_download_to_report(store: Store) -> None:
    ids = ["diabetes", "digits"]
    outcomes = full_benchmark(ids, RunRequest(agent="dummy", run_group="group", store=store.root, seeds=2))
    rows = [f"{name} seed {seed}" for name in ids for seed in (0, 1)]
    assert results(outcomes) == dict.fromkeys([*ids, *rows], "done")

    grades = pd.read_parquet(f"{store.local()}/tables/grades")
    assert sorted(zip(grades["competition_id"], grades["seed"], strict=True)) == [(i, s) for i in ids for s in (0, 1)]
    assert set(grades["outcome"]) == {"valid"}
    runs = pd.read_parquet(f"{store.local()}/tables/runs")
    assert set(runs["status"]) == {"completed"}
    summary = json.loads((store.local("reports", "group") / "summary.json").read_text())
    assert summary["total_runs"] == summary["total_valid_submissions"] == 4
    assert "digits" in (store.local("reports", "group") / "report.html").read_text()
    assert "digits" in (store.local("reports", "group") / "report.md").read_text()

    events: list[Event] = []
    with listening(events.append):
        again = full_benchmark(ids, RunRequest(agent="dummy", run_group="group", store=store.root, seeds=2))
    assert set(results(again).values()) == {"reused"}
    assert sorted(event.row for event in events) == sorted([*ids, *rows]), "each is reported once"
    pd.testing.assert_frame_equal(read_table(store, "grades"), grades.assign(run_group="group"))

    more = full_benchmark(ids, RunRequest(agent="dummy", run_group="group", store=store.root, seeds=3))
    new = {"diabetes seed 2": "done", "digits seed 2": "done"}
    assert results(more) == {**dict.fromkeys([*ids, *rows], "reused"), **new}


def test_dask_workers_prepare_what_is_not_small(
    store: Store, tmp_path: Path, digits_zip: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.wiring.dask_workers.SMALL_DOWNLOAD_BYTES", 0)
    mapped: list[str] = []
    through = DaskExecutor.map

    def noting(self: DaskExecutor, function: Callable[..., Any], *given: Any, **how: Any) -> Iterator[Any]:
        mapped.append(function.__name__)
        return through(self, function, *given, **how)

    monkeypatch.setattr(DaskExecutor, "map", noting)
    assert results(prepare(["digits"], store.root)) == {"digits": "done"}
    assert mapped[:1] == ["declare"]
    expected = datasets.prepare("digits", digits_zip, tmp_path / "alone")
    url = store.prepared(require(store, Dataset("v1", "digits")))
    pd.testing.assert_frame_equal(pd.read_parquet(f"{url}/manifest.parquet"), expected)


def test_what_needs_no_flow_starts_none(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", "-c", "diabetes", "--agent", "dummy", "--run-group", "again", "--store", store.root]
    full_benchmark(["diabetes"], RunRequest(agent="dummy", run_group="again", store=store.root))
    grade = store.local("runs", "again", "diabetes", 0) / "grade.json"
    summary = store.local("reports", "again") / "summary.json"
    summary.unlink()
    monkeypatch.setattr("flows.commands.session.run_flow", lambda *_, **__: pytest.fail("a flow was started"))
    assert main(command) == 0
    output = capsys.readouterr().out
    assert "  reused  diabetes: prepared already\n  reused  diabetes seed 0: already graded\n2 reused" in output
    assert summary.exists(), "an earlier command may have been ended before the report"
    code = f"import sys; from flows.cli import main; main({command!r}); sys.exit('prefect' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0, "Prefect takes long to import"
    grade.unlink()
    with pytest.raises(pytest.fail.Exception, match="a flow was started"):
        main(command)


def test_what_the_prefect_ui_shows(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flows within a flow leave heartbeats to it: Prefect waits up to a second for the end of each that emits them."""
    beating: list[str] = []
    through = flow_engine.emit_event

    def noting(event: str, resource: dict[str, str], **rest: Any) -> Any:
        if event == HEARTBEAT:
            beating.append(resource["prefect.resource.name"])
        return through(event=event, resource=resource, **rest)

    monkeypatch.setattr(flow_engine, "emit_event", noting)
    full_benchmark(["diabetes"], RunRequest(agent="dummy", run_group="shown", store=store.root))
    with get_client(sync_client=True) as client:
        flow_runs = {run.name for run in client.read_flow_runs()}
        task_runs = {run.name for run in client.read_task_runs()}
        keys = {
            a.key for a in client.read_artifacts(artifact_filter=ArtifactFilter(key=ArtifactFilterKey(exists_=True)))
        }
    benchmark = "dummy on diabetes, group shown"
    assert {benchmark, "prepare diabetes v1", f"evaluate {benchmark}"} <= flow_runs
    assert set(beating) == {benchmark}
    wanted = {"download diabetes", "split diabetes", "checksum diabetes", "run dummy on diabetes seed 0"}
    assert wanted | {"grade diabetes seed 0", "aggregate shown"} <= task_runs
    assert {"prepared", "runs", "results", "report", "store", "summary"} <= keys


def test_one_failure_stops_nothing_else(store: Store, tmp_path: Path) -> None:
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    shutil.copy(Path(__file__), downloads / "leaf-classification.zip")
    with pytest.raises(PartlyFailed) as caught:
        full_benchmark(
            ["diabetes", "leaf-classification"],
            RunRequest(agent="dummy", run_group="partly", store=store.root),
            raw_dir=str(downloads),
        )
    outcomes = {each.what: each for each in caught.value.outcomes}
    assert results(outcomes.values()) == {
        "diabetes": "done",
        "leaf-classification": "failed",
        "diabetes seed 0": "done",
    }
    assert "not a complete zip archive" in outcomes["leaf-classification"].message
    assert read_table(store, "grades")["competition_id"].tolist() == ["diabetes"]


def test_a_group_without_a_single_run_says_why(store: Store, tmp_path: Path) -> None:
    agent = make_agent(tmp_path / "big", "true")
    definition = tmp_path / "big" / "agent.yaml"
    definition.write_text(definition.read_text().replace("trusted: true", "trusted: false"))
    with pytest.raises(PartlyFailed, match="not marked as trusted") as caught:
        full_benchmark(["diabetes"], RunRequest(agent=agent, run_group="refused", store=store.root))
    assert results(caught.value.outcomes) == {"diabetes": "done", "diabetes seed 0": "failed"}


def test_a_damaged_dataset_is_prepared_again(store: Store) -> None:
    prepare(["diabetes"], store.root)
    shutil.rmtree(store.local("prepared", "v1", "diabetes"))
    assert results(prepare(["diabetes"], store.root)) == {"diabetes": "done"}
    dataset = require(store, Dataset("v1", "diabetes"))
    assert store.local(store.relative(store.prepared(dataset)), "private", "test.csv").is_file()


def test_raw_archives_are_kept_on_request_only(store: Store) -> None:
    prepare(["diabetes"], store.root)
    assert not store.exists(store.raw("diabetes"))
    prepare(["digits"], store.root, keep_raw=True)
    assert store.exists(store.raw("digits"))


def make_agent(folder: Path, script: str) -> str:
    folder.mkdir()
    folder.joinpath("agent.yaml").write_text(f"name: {folder.name}\ndescription: for a test\ntrusted: true\n")
    folder.joinpath("start.sh").write_text(f"#!/bin/bash\n{script}\n")
    return str(folder)


ODD = (
    ("exit 3", "crashed", "missing", "3"),
    ("true", "completed", "missing", "no submission"),
    (": > $SUBMISSION_DIR/submission.csv", "completed", "invalid", "lacks"),
    ("head -c 100000 /dev/urandom > $SUBMISSION_DIR/submission.csv", "completed", "invalid", ""),
    ("truncate -s 100M $SUBMISSION_DIR/submission.csv", "completed", "invalid", "bytes"),
    ("ln -s /etc/passwd $SUBMISSION_DIR/submission.csv", "completed", "missing", "link"),
)
"""What an agent does, and then the status of its run, the outcome and the message of its grade."""


def test_whatever_an_agent_does_is_a_result(store: Store, tmp_path: Path) -> None:
    """With each seed it does something else."""
    cases = "".join(f"{seed}) {script};;\n" for seed, (script, *_) in enumerate(ODD))
    agent = make_agent(tmp_path / "odd", f"case $SEED in\n{cases}esac")
    full_benchmark(["diabetes"], RunRequest(agent=agent, run_group="odd", store=store.root, seeds=len(ODD)))
    require_results(store, [rest for _, *rest in ODD])


def test_an_agent_that_takes_too_long_is_a_result(store: Store, tmp_path: Path) -> None:
    agent = make_agent(tmp_path / "odd", "sleep 1000")
    full_benchmark(["diabetes"], RunRequest(agent=agent, run_group="odd", store=store.root, time_limit_seconds=2))
    require_results(store, [["timeout", "missing", ""]])


def require_results(store: Store, expected: list[list[str]]) -> None:
    """The runs of the group `odd` have these statuses, outcomes and messages, by seed."""
    runs, grades = (read_table(store, name).sort_values("seed").to_dict("records") for name in ("runs", "grades"))
    assert [[run["status"], grade["outcome"]] for run, grade in zip(runs, grades, strict=True)] == [
        each[:2] for each in expected
    ]
    for grade, (*_, message) in zip(grades, expected, strict=True):
        assert message in grade["message"]
        assert "\n" not in grade["message"]
        assert not grade["any_medal"]
        assert (store.local("runs", "odd", "diabetes", grade["seed"]) / "logs" / "agent.log").is_file()


def test_another_agent_code_is_another_run(store: Store, tmp_path: Path) -> None:
    agent = make_agent(tmp_path / "mine", "cp $SAMPLE_SUBMISSION $SUBMISSION_DIR/submission.csv")
    request = RunRequest(agent=agent, run_group="g", store=store.root)
    assert results(full_benchmark(["diabetes"], request))["diabetes seed 0"] == "done"
    (tmp_path / "mine" / "start.sh").write_text("#!/bin/bash\nexit 1\n")
    with pytest.raises(PartlyFailed, match="other conditions: the files of the agent have changed"):
        full_benchmark(["diabetes"], request)
    again = request.model_copy(update={"overwrite": True})
    assert results(full_benchmark(["diabetes"], again))["diabetes seed 0"] == "done"
    assert read_table(store, "grades")["outcome"].tolist() == ["missing"], "what the old code left is gone"


def test_the_baseline_beats_the_sample_submission(store: Store) -> None:
    ids = registry.list("demo")
    full_benchmark(ids, RunRequest(agent="baseline", run_group="baseline", store=store.root))
    scores = read_table(store, "grades").set_index("competition_id")["score"].to_dict()
    for name in ids:
        competition, dataset = registry.get(name), require(store, Dataset("v1", name))
        folder = store.local(store.relative(store.prepared(dataset)))
        better = scores[name] - competition.grade(folder / competition.facts.files.sample_submission, folder, "v1")
        assert (better < 0) if competition.facts.lower_is_better else (better > 0), name
