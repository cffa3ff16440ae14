"""The whole installation for real: started by `make up`, used over its API and its UI, ended by `make down`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from operator import itemgetter, methodcaller
from pathlib import Path

import httpx
import pandas as pd
import psutil
import pytest
from distributed import Client, Event
from distributed.security import Security
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from common.guard import basic, new_credential
from storage.datasets.cluster_access import certificate_security
from storage.datasets.workers import ONE_MACHINE
from tests.agents import write_agent
from tests.deployments import foreign_pages
from tests.deployments.foreign_pages import EVIL, NAME, attack, foreign_server
from tests.deployments.installation import Running, installation, until_served
from tests.grading.page.browser import Browser

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_the_nightly_runs_on_the_demo_and_its_next_one_compares(running: Running) -> None:
    first = running.trigger("nightly/nightly-lite", split="demo")
    running.require_completed(first)
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
    prepared = {bar["description"].replace("\\", "") for bar in bars if bar["data"] == 100.0}
    assert {f"prepare {name} v1" for name in ("breast-cancer", "diabetes", "digits")} <= prepared
    results = [line.strip("| ").split(" | ") for line in story["results"]["data"].splitlines()]
    assert results[0][:6] == ["competition", "seed", "agent", "run", "score", "medal"]
    assert [(row[0], row[1], row[3]) for row in results[2:]] == [
        (name, "0", "completed") for name in (r"breast\-cancer", "diabetes", "digits")
    ]
    assert all(float(row[4]) >= 0 and row[5] for row in results[2:])
    for key, has in (("report", "<html"), ("store", "digits/")):
        (link,) = re.findall(r"\((http://127.*?)\)", story[key]["data"])
        assert has in running.get(link).text
    (answers,) = running.store.glob("prepared/v1/digits/*/private")
    assert running.get(f"{link.split('/runs/')[0]}/{answers.relative_to(running.store)}/").status_code == 404
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
    security = certificate_security(running.installation.certificate)
    with Client(running.installation.dask_address(), security=security) as client:
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
    assert "bokeh" in running.get(dashboard).text
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

    def shown(text: str) -> bool:
        return text in (browser.run("document.body.innerText") or "")

    try:
        browser.call("Page.navigate", url=f"{running.installation.url}/")
        browser.wait_for(lambda: browser.run("document.querySelector('input[type=password]') !== null"), 240)
        browser.run("document.querySelector('input[type=password]').focus()")
        browser.call("Input.insertText", text=running.installation.credential)
        browser.run("document.querySelector('button[type=submit]').click()")
        browser.wait_for(lambda: shown("Dashboard") and not shown("Login"))
        browser.call("Page.navigate", url=f"{running.installation.url}/runs/flow-run/{run}?tab=Details")
        browser.wait_for(lambda: shown("grade nobody") and shown("UserError: no finished runs of"), 240)
    finally:
        browser.close()


@pytest.mark.service("chromium")
def test_pages_of_others_in_the_operators_browser_start_nothing(running: Running, tmp_path: Path) -> None:
    marker = tmp_path / "started"
    deployment = running.api("/deployments/name/grading/grade")["id"]
    create = f"/api/deployments/{deployment}/create_flow_run"
    run = {"name": NAME, "job_variables": {"command": f"touch {marker}"}, "state": {"type": "SCHEDULED"}}
    server, files = running.installation.url, (running.state / "files-url").read_text()
    dashboard = running.installation.dashboard().removesuffix("/status")
    login = basic(running.installation.credential)
    (tmp_path / "page.html").write_text("<body>What an agent left.</body>")
    browser = foreign_pages.browser(tmp_path / "home")
    try:
        with foreign_server() as port:
            elsewhere = [f"http://{EVIL}:{port}/", f"http://127.0.0.1:{port}/", (tmp_path / "page.html").as_uri()]
            for page in elsewhere:
                for path, body in ((create, run), ("/api/flows/", {"name": NAME})):
                    statuses, socket = attack(browser, page, server, path, body, login)
                    assert (statuses, socket) == ({403}, "refused"), (page, path)
            for target, path in ((files, "/runs/"), (dashboard, "/status")):
                statuses, _ = attack(browser, elsewhere[0], target, path, {}, login)
                assert statuses == {403}, target
        rebound = {"Host": files.removeprefix("http://").replace("127.0.0.1", EVIL), "Authorization": login}
        refused = httpx.get(f"{files}/runs/", headers=rebound, trust_env=False)
        assert refused.status_code == 403
        assert "sandbox" in refused.headers["content-security-policy"], "no script runs on its pages, nor an attack"
        for target, path in ((server, create), (dashboard, "/status")):
            # Its own name resolves to this machine now, so its page is one of the server for the browser.
            own = target.replace("127.0.0.1", EVIL)
            statuses, socket = attack(browser, f"{own}/", own, path, run, login)
            assert (statuses, socket) == ({403}, "refused"), target
    finally:
        browser.close()
    assert running.api("/flow_runs/filter", {"flow_runs": {"name": {"any_": [NAME]}}}) == []
    assert running.api("/flows/filter", {"flows": {"name": {"any_": [NAME]}}}) == []
    assert not marker.exists()


def test_only_the_login_opens_the_servers(running: Running) -> None:
    """Other users of the machine, and agents in its network, can send anything; programs send no `Origin`."""
    installation = running.installation
    for url in (f"{installation.url}/api/flow_runs/count", (running.state / "files-url").read_text() + "/reports/"):
        for wrong in ("", new_credential()):
            headers = {"Authorization": basic(wrong)} if wrong else {}
            assert httpx.post(url, headers=headers, json={}, trust_env=False).status_code == 401, url
            assert httpx.get(url, headers=headers, trust_env=False).status_code == 401, url
    assert httpx.get(installation.dashboard(), trust_env=False).status_code == 401
    with pytest.raises(OSError, match=r"does not match|Timed out"):
        Client(installation.dask_address(), security=Security.temporary(), timeout="5s", set_as_default=False)
    for file in (installation.login, installation.certificate, installation.exports):
        assert file.stat().st_mode & 0o777 == 0o600, file
    secret = installation.credential.partition(":")[2]
    for service in installation.processes.running().values():
        for process in (service, *service.children(recursive=True)):
            assert secret not in " ".join(process.cmdline())
            for link in process.net_connections():
                assert link.status != psutil.CONN_LISTEN or link.laddr.ip == "127.0.0.1", process.cmdline()


def test_the_server_is_reached_by_the_names_that_the_operator_lists(running: Running) -> None:
    for name, status in {"proxy.example:4300": 200, "proxy.example:4301": 403}.items():
        assert running.get(f"{running.installation.url}/api/health", Host=name).status_code == status


@pytest.mark.parametrize("path", ["events/out", "logs/out"])
def test_events_and_logs_come_over_web_sockets_to_those_with_the_login(running: Running, path: str) -> None:
    address = f"{running.installation.url.replace('http', 'ws')}/api/{path}"

    def said(token: str, **headers: str) -> str:
        with connect(address, subprotocols=[Subprotocol("prefect")], additional_headers=headers, proxy=None) as socket:
            socket.send(json.dumps({"type": "auth", "token": token}))
            return str(json.loads(socket.recv(timeout=60))["type"])

    assert said(running.installation.credential) == "auth_success"
    assert said(running.installation.credential, Origin=running.installation.url) == "auth_success"
    with pytest.raises(ConnectionClosed, match="Invalid token"):
        said(new_credential())
    with pytest.raises(InvalidStatus, match="403"):
        said(running.installation.credential, Origin="null")


def test_a_flow_run_sets_nothing_of_its_process(running: Running, tmp_path: Path) -> None:
    """Not even one who may start flow runs: they say what runs, not as which program."""
    marker = tmp_path / "started"
    job = {"command": f"touch {marker}", "env": {"MLEBENCH_STORE": str(tmp_path)}, "working_dir": str(tmp_path)}
    deployment = running.api("/deployments/name/grading/grade")
    for name, value in job.items():
        body = {"parameters": {"run_group": "nobody"}, "job_variables": {name: value}}
        with pytest.raises(OSError, match=r"409|422"):
            running.api(f"/deployments/{deployment['id']}/create_flow_run", body)
    # The server does not check what is created in this way.
    run = running.api(
        "/flow_runs/",
        {
            "flow_id": deployment["flow_id"],
            "deployment_id": deployment["id"],
            "parameters": {"run_group": "nobody"},
            "work_pool_name": "mlebench",
            "job_variables": job,
            "state": {"type": "SCHEDULED"},
        },
    )["id"]
    message = running.ended(run)["message"]
    assert f"no finished runs of group 'nobody' in file://{running.store}" in message
    assert not marker.exists()


def test_no_agent_gets_the_login(running: Running, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    agent = write_agent(running.folder.parent / "looks", f"env > {seen}\nls -l /proc/self/fd >> {seen}\n")
    run = running.trigger("benchmark/full-benchmark", competition_ids=["digits"], agent=str(agent), run_group="looks")
    running.require_completed(run)
    text = seen.read_text()
    assert "COMPETITION_ID=digits" in text
    for word in (running.installation.credential, "PREFECT", "DASK_", str(running.state)):
        assert word not in text, word


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
        running.require_completed(run)
        assert not list((running.state / "prefect").glob("*.db")), "nothing is in SQLite"
