"""Attempts on the hosts of a work pool, with a real server, a real S3 store and real workers."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import urllib.request
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.deployments.fleet import WAITING, Fleet
from tests.deployments.installation import log_of, until_served
from tests.flows.test_at_once import Gated

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.service("postgres")]


def test_three_hosts_make_each_attempt_once(fleet: Fleet) -> None:
    agent = fleet.agent("waiting", WAITING)
    hosts = [fleet.worker(name, 1) for name in ("anna", "bert", "carl")]
    command = ("run", "--split", "demo", "--seeds", "2", "--agent", "waiting", "--pool", "agents", "--run-group", "six")
    with fleet.start(*command) as process:
        until_served("an agent on each host", lambda: len(agent.starts()) == 3, 400)
        until_served("the rest", lambda: len(fleet.flow_runs("group:six")) == 6)
        assert fleet.states("group:six").count("RUNNING") == 3, "what waits for a slot is not running"
        assert "COMPLETED" not in fleet.states("group:six")
        # The services of an attempt are in its own process, beside the agent.
        for run in fleet.flow_runs("group:six"):
            if run["state_type"] == "RUNNING":
                listening = psutil.Process(int(run["infrastructure_pid"])).net_connections("tcp")
                assert any(each.status == psutil.CONN_LISTEN for each in listening), run["name"]
        agent.let_go()
        output, _ = process.communicate(timeout=500)
    assert process.returncode == 0, output
    assert "9 done" in output, output
    names = [f"{name}-{seed}" for name in ("breast-cancer", "diabetes", "digits") for seed in (0, 1)]
    assert sorted(agent.starts()) == names
    records = [fleet.record("six", name[:-2], int(name[-1])) for name in names]
    assert {record.status for record in records} == {"completed"}
    assert {record.host for record in records} == {fleet.host(name) for name in ("anna", "bert", "carl")}

    runs = fleet.flow_runs("group:six")
    assert {run["name"] for run in runs} == {f"waiting on {name[:-2]} seed {name[-1]}, group six" for name in names}
    (run,) = (each for each in runs if each["name"].startswith("waiting on digits seed 0"))
    assert {"mlebench", "group:six", "competition:digits", "agent:waiting"} < set(run["tags"])
    assert any(tag.startswith("host:") for tag in run["tags"])
    lines = log_of(fleet.api, run["id"], "digits seed 0: graded: score 0.075, no medal")
    assert "digits seed 0: agent started on " in lines
    assert "digits seed 0: the agent's last output:\nmy last words on digits" in lines
    told = fleet.api("/artifacts/filter", {"artifacts": {"flow_run_id": {"any_": [run["id"]]}}})
    artifacts = {each["type"]: each for each in told}
    assert re.fullmatch(r"digits seed 0: \d+ s of .*h", artifacts["progress"]["description"])
    (link,) = re.findall(r"\[submission.csv\]\((.*?)\)", artifacts["markdown"]["data"])
    with urllib.request.urlopen(link, timeout=60) as answer:  # as a browser does, without credentials
        assert answer.read().count(b"\n") > 10

    again = fleet.mlebench(*command)
    assert "9 reused" in again, again
    assert len(fleet.flow_runs("group:six")) == 6
    board = fleet.mlebench("watch", "six")
    assert board.count("  done ") == 6, board
    assert "Scores and medals of six" in board
    for host in hosts:
        assert host.is_running()


def test_cancelling_ends_agents_and_keeps_what_they_handed_in(fleet: Fleet) -> None:
    agent = fleet.agent("cancelled", WAITING)
    fleet.worker("dora", 1)
    ids = ("-c", "digits", "-c", "diabetes")
    with fleet.start("run", *ids, "--agent", "cancelled", "--pool", "agents", "--run-group", "gone") as process:
        until_served("both attempts", lambda: len(fleet.flow_runs("group:gone")) == 2, 400)
        until_served("an agent", lambda: len(agent.processes()) == 2, 400)
        # Ctrl-C ends the watching only.
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert "The agents of group gone go on" in output, output
    assert len(agent.processes()) == 2
    board = fleet.mlebench("watch", "gone", "--once")
    assert f"running on {fleet.host('dora')}" in board, board
    assert "queued" in board, board
    lines = [each for each in fleet.mlebench("watch", "gone", "--once", "--json").splitlines() if each.startswith("{")]
    assert {json.loads(each)["state"].split()[0] for each in lines} == {"running", "queued"}

    output = fleet.mlebench("cancel", "gone")
    assert "2 cancelled, 0 not confirmed" in output, output
    assert agent.processes() == []
    (started,) = agent.starts()
    competition = started.rsplit("-", 1)[0]
    record = until_served("the record", lambda: fleet.record("gone", competition), 120)
    assert record.status == "cancelled"
    assert record.submission_exists
    assert fleet.store().read(f"{fleet.bucket.url}/runs/gone/{competition}/0/submission.csv")
    assert fleet.states("group:gone") == ["CANCELLED", "CANCELLED"]
    assert len(agent.starts()) == 1, "what waited was not started"

    agent.let_go()
    output = fleet.mlebench("run", *ids, "--agent", "cancelled", "--pool", "agents", "--run-group", "gone")
    assert sorted(agent.starts()) == sorted([started, "digits-0", "diabetes-0"]), "cancelled attempts are made again"
    assert fleet.record("gone", competition).status == "completed"


def test_attempts_start_while_another_competition_is_being_prepared(fleet: Fleet, tmp_path: Path) -> None:
    agent, gated = fleet.agent("early", WAITING), Gated(tmp_path)
    agent.let_go()
    fleet.mlebench("prepare", "-c", "digits")
    fleet.worker("lena", 1)
    # gated comes first, and is held while it is planned.
    command = ("run", "-c", "gated", "-c", "digits", "--raw-dir", str(gated.downloads), "--agent", "early")
    where = {"MLEBENCH_COMPETITIONS": str(gated.competitions)}
    with fleet.start(*command, "--pool", "agents", "--run-group", "early", **where) as process:
        until_served("gated being prepared", gated.begun, 300)
        until_served("the end of an attempt", lambda: fleet.record("early", "digits"), 300)
        assert not fleet.store().glob("prepared/v1/gated/*/commit.json"), "it is still being prepared"
        process.kill()
    gated.let_go()


def test_what_no_host_can_take_waits_and_is_said_to_be_unplaceable(fleet: Fleet) -> None:
    agent = fleet.agent("greedy", WAITING)
    (agent.folder / "agent.yaml").write_text("name: greedy\ndescription: d\ntrusted: true\nlimits: {gpus: 4}\n")
    fleet.mlebench("prepare", "-c", "digits")
    fleet.worker("mona", 1, "--label", "gpu", "--label", "cpu")
    command = ("run", "-c", "digits", "--agent", "greedy", "--pool", "agents", "--run-group", "greedy")
    with fleet.start(*command) as process:
        assert process.stdout is not None
        said = next((line for line in process.stdout if "no host can take it" in line), "")
        assert f"the nearest, {fleet.host('mona')}, lacks 4 GPUs (it has 0)" in said
        assert fleet.states("group:greedy") == ["SCHEDULED"], "it waits for a host that has them"
        process.kill()
    assert agent.starts() == []
    fleet.mlebench("cancel", "greedy")


def test_without_a_pool_what_waits_is_pending(fleet: Fleet) -> None:
    agent = fleet.agent("local", WAITING)
    command = ("run", "-c", "digits", "--seeds", "2", "--agents", "1", "--agent", "local", "--run-group", "here")
    # From a store elsewhere, the data of the next attempt would be fetched meanwhile, which is no waiting.
    with fleet.start(*command, "--store", str(fleet.folder / "local-store")) as process:
        until_served("an agent", lambda: len(agent.processes()) == 2, 400)

        def states() -> list[str]:
            found = fleet.api("/task_runs/filter", {"task_runs": {"name": {"like_": "attempt digits seed"}}})
            return sorted(each["state_type"] for each in found)

        until_served("one of two", lambda: states() == ["PENDING", "RUNNING"], 60)
        agent.let_go()
        output, _ = process.communicate(timeout=400)
    assert process.returncode == 0, output


def _submitted(fleet: Fleet, group: str) -> bool:
    return len(fleet.flow_runs(f"group:{group}")) == 1


def test_groups_share_a_pool_by_priority(fleet: Fleet) -> None:
    agent = fleet.agent("shared", WAITING)
    fleet.worker("hera", 1)
    options = ("--agent", "shared", "--pool", "agents")
    with contextlib.ExitStack() as commands:
        for name, group, priority in (
            ("digits", "before", "low"),
            ("diabetes", "later", "low"),
            ("breast-cancer", "urgent", "high"),
        ):
            commands.enter_context(
                fleet.start("run", "-c", name, *options, "--run-group", group, "--priority", priority)
            )
            until_served("its flow run", partial(_submitted, fleet, group), 400)
            until_served("the first agent", lambda: len(agent.starts()) == 1, 400)
        agent.let_go()
        until_served("all", lambda: len(agent.starts()) == 3, 400)
    assert agent.starts() == ["digits-0", "breast-cancer-0", "diabetes-0"]
    fleet.processes.stop("hera")
