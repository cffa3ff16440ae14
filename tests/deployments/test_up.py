"""The whole installation for real: started by `make up`, used over its API and its UI, ended by `make down`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from operator import itemgetter, methodcaller
from pathlib import Path

import pandas as pd
import psutil
import pytest
from distributed import Client, Event

from storage.datasets.cluster import ONE_MACHINE
from tests.deployments.installation import Running, installation, until_served
from tests.grading.page.browser import Browser

pytestmark = pytest.mark.timeout(600)


def test_the_nightly_runs_on_the_demo_and_its_next_one_compares(running: Running) -> None:
    first = running.trigger("nightly/nightly-lite", split="demo")
    assert running.ended(first)["type"] == "COMPLETED", running.log()
    # Other tests have run and prepared things in this installation, or not.
    night = running.flow_run(first)
    _, _, group = night["name"].partition("nightly: dummy on demo, group ")
    table = running.store / "tables" / "grades" / f"run_group={group}"
    grades = pd.read_parquet(table)
    assert sorted(grades["competition_id"]) == ["breast-cancer", "diabetes", "digits"]
    assert set(grades["outcome"]) == {"valid"}
    told = running.api("/artifacts/filter", {})
    story = {each["key"]: each for each in told if each["created"] >= night["start_time"]}
    assert {"prepared", "runs", "nightly"} <= story.keys()
    bars = running.api("/artifacts/filter", {"artifacts": {"type": {"any_": ["progress"]}}})
    prepared = {bar["description"] for bar in bars if bar["data"] == 100.0}
    assert {f"prepare {name} v1" for name in ("breast-cancer", "diabetes", "digits")} <= prepared
    results = [line.strip("| ").split(" | ") for line in story["results"]["data"].splitlines()]
    assert results[0][:4] == ["competition", "seed", "agent", "run"]
    assert [(row[0], row[1], row[3]) for row in results[2:]] == [
        (name, "0", "completed") for name in (r"breast\-cancer", "diabetes", "digits")
    ]
    assert all(float(row["score"]) >= 0 and row["medal"] for row in results)
    for key, has in (("report", "<html"), ("store", "digits/")):
        (link,) = re.findall(r"\((http://127.*?)\)", story[key]["data"])
        with urllib.request.urlopen(link, timeout=30) as answer:  # as a browser does: no tools, no credentials
            assert has in answer.read().decode()
    (answers,) = running.store.glob("prepared/v1/digits/*/private")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{link.split('/runs/')[0]}/{answers.relative_to(running.store)}/", timeout=30)
    log = running.log_of(first, "digits seed 0: graded: score 0.075, no medal")
    for line in (r"digits seed 0: agent started on \S+", r"ended: completed after \d+ s, 0 validations"):
        assert re.search(line, log), log
    assert story["summary"]["type"] == "markdown"
    assert "diabetes" in story["summary"]["data"]
    tasks = {each["name"] for each in running.api("/task_runs/filter", {})}
    assert {"split digits", "run dummy on digits seed 0", "grade digits seed 0", f"aggregate {group}"} <= tasks

    # Somebody's change to a grader, seen from the next night: yesterday's score is another one.
    (part,) = table.glob("part-0.parquet")
    frame = pd.read_parquet(part)
    frame.loc[frame["competition_id"] == "digits", "score"] += 0.125
    frame.to_parquet(part, index=False)
    second = running.ended(running.trigger("nightly/nightly-lite", split="demo"))
    assert second["type"] == "FAILED"
    assert "1 scores moved" in second["message"]
    assert "digits seed 0" in second["message"]
    third = running.ended(running.trigger("nightly/nightly-lite", split="demo"))
    assert third["type"] == "COMPLETED", third["message"]


def test_every_parameter_is_described_for_the_form(running: Running) -> None:
    deployments = running.api("/deployments/filter", {})
    names = {each["name"] for each in deployments}
    assert names == {"full-benchmark", "nightly-lite", "prepare", "grade", "recover"}
    for each in deployments:
        for name, schema in each["parameter_openapi_schema"]["properties"].items():
            assert schema["description"], (each["name"], name)
        assert "mlebench" in each["tags"]
    (benchmark, nightly) = (each for each in sorted(deployments, key=itemgetter("name")) if "-" in each["name"])
    assert benchmark["parameters"] == {}, "its defaults: the demo with the baseline, nothing is downloaded"
    form = benchmark["parameter_openapi_schema"]["properties"]
    assert (form["split"]["default"], form["agent"]["default"]) == ("demo", "baseline")
    offered, typed = form["agent"]["anyOf"]
    assert {"aide@dev", "baseline", "dummy", "of-a-user"} < set(offered["enum"]), "also those of MLEBENCH_AGENT_DIRS"
    assert "enum" not in typed
    assert [schedule["schedule"]["cron"] for schedule in nightly["schedules"]] == ["0 2 * * *"]
    assert nightly["parameters"] == {"split": "low", "agent": "dummy"}


def test_a_wrong_parameter_is_refused_before_anything_runs(running: Running) -> None:
    for deployment, wrong in (
        ("preparation/prepare", {"split": "lo"}),
        ("benchmark/full-benchmark", {"seeds": 0}),
        ("benchmark/full-benchmark", {"execution": {"time_limit_seconds": 0}}),
        ("nightly/nightly-lite", {"tolerance": -1.0}),
    ):
        with pytest.raises(OSError, match=r"409|422"):
            running.trigger(deployment, **wrong)


def test_the_next_nights_are_scheduled(running: Running) -> None:
    wanted = {"deployments": {"name": {"any_": ["nightly-lite"]}}, "flow_runs": {"tags": {"all_": ["auto-scheduled"]}}}
    nights = until_served("the scheduler's first round", lambda: running.api("/flow_runs/filter", wanted))
    assert {night["expected_start_time"][11:16] for night in nights} == {"02:00"}


def test_two_preparations_at_once_on_one_dask_cluster(running: Running, tmp_path: Path) -> None:
    stores = [str(tmp_path / name) for name in ("a", "b")]
    with Client(running.installation.dask_address()) as client:
        # Every thread of the cluster is busy until both flow runs are, so that they do run at one time.
        both = Event("both run")
        held = [client.submit(methodcaller("wait"), both, pure=False) for _ in range(sum(client.nthreads().values()))]
        runs = [running.trigger("preparation/prepare", split="demo", store=store) for store in stores]
        until_served(
            "two flow runs at once", lambda: {running.flow_run(run)["state_type"] for run in runs} == {"RUNNING"}
        )
        both.set()
        client.gather(held)
        names = {worker["name"] for worker in client.scheduler_info(n_workers=-1)["workers"].values()}
    assert [running.ended(run)["type"] for run in runs] == ["COMPLETED", "COMPLETED"], running.log()
    assert all(re.fullmatch(rf"{ONE_MACHINE}(-\d+)?", name) for name in names), "so they share the machine's memory"
    dashboard = running.installation.dashboard()
    for run in runs:
        running.log_of(run, f"Dask dashboard: {dashboard}")
    with urllib.request.urlopen(dashboard, timeout=30) as answer:
        assert "bokeh" in answer.read().decode()
    manifests = [
        [pd.read_parquet(path) for path in sorted(Path(store).glob("prepared/v1/*/*/manifest.parquet"))]
        for store in stores
    ]
    assert len(manifests[0]) == 3
    for one, other in zip(*manifests, strict=True):
        pd.testing.assert_frame_equal(one, other)


def test_a_second_up_changes_nothing(running: Running) -> None:
    before = (running.state / "processes.json").read_text()
    assert running.installation.url in running.up()
    assert (running.state / "processes.json").read_text() == before


@pytest.mark.service("chromium")
def test_the_ui_shows_the_runs(running: Running, tmp_path: Path) -> None:
    run = running.trigger("grading/grade", run_group="nobody")
    state = running.ended(run)
    assert (state["type"], "no finished runs of group 'nobody'" in state["message"]) == ("FAILED", True)
    browser = Browser(tmp_path)
    try:
        browser.call("Page.navigate", url=f"{running.installation.url}/runs/flow-run/{run}?tab=Details")

        def shown(text: str) -> bool:
            return text in (browser.run("document.body.innerText") or "")

        browser.wait_for(lambda: shown("grade nobody") and shown("UserError: no finished runs of"), 240)
    finally:
        browser.close()


def test_down_ends_all_it_started_and_nothing_else(tmp_path: Path) -> None:
    like_a_worker = ["-m", "prefect", "worker", "start", "--pool", "mlebench", "--type", "process"]
    bystander = subprocess.Popen([sys.executable, "-c", "input()", *like_a_worker], stdin=subprocess.PIPE)
    try:
        with installation(tmp_path / "up") as running:
            services = running.installation.processes.running()
            assert list(services) == ["server", "files", "dask-scheduler", "dask-workers", "worker"]
            family = [each for service in services.values() for each in (service, *service.children(recursive=True))]
            # An id that now belongs to somebody else, as after a restart of the machine.
            record = running.state / "processes.json"
            record.write_text(json.dumps({**json.loads(record.read_text()), "old": [bystander.pid, 1.0]}))
            assert running.down().strip() == "ended: worker, dask-workers, dask-scheduler, files, server"
            _, alive = psutil.wait_procs(family, timeout=30)
            assert alive == []
            assert running.down().strip() == "ended: nothing was running"
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.service("postgres")
def test_the_server_on_postgresql(tmp_path: Path, postgres: str) -> None:
    with installation(tmp_path / "up", MLEBENCH_DATABASE_URL=postgres) as running:
        run = running.trigger("nightly/nightly-lite", split="demo", competition_ids=["diabetes"])
        assert running.ended(run)["type"] == "COMPLETED", running.log()
        assert not list((running.state / "prefect").glob("*.db")), "nothing is in SQLite"
