"""A fleet on this machine: a Prefect server on PostgreSQL, an S3 store, and workers with folders of their own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import psutil

from common.guard import new_credential
from deployments.background import BackgroundProcesses, free_port
from deployments.server import CREDENTIAL, ask, start_server
from storage.runs.folders import RunFolder
from storage.store import Store
from tests import ordinary_user
from tests.deployments.installation import ROOT, until_served
from tests.processes import descendants, living
from tests.s3.fixtures import Bucket

POOL = "agents"


class Fleet:
    """The server, the store and the workers of a test."""

    def __init__(self, folder: Path, bucket: Bucket, database: str) -> None:
        self.folder, self.bucket, self.database, self.port = folder, bucket, database, free_port()
        self.processes = BackgroundProcesses(folder / "services")
        self.agents = folder / "agents"
        self.agents.mkdir()
        self.env = {
            **os.environ,
            **bucket.environment,
            "NO_PROXY": "127.0.0.1",
            "PYTHONPATH": str(ROOT),
            "PREFECT_HOME": str(folder / "prefect"),
            "PREFECT_API_URL": f"http://127.0.0.1:{self.port}/api",
            CREDENTIAL: new_credential(),
            # A host has two workers, and a query takes them and the server 25 ms.
            "PREFECT_WORKER_QUERY_SECONDS": "2",
            # A worker that is killed counts as offline after a minute.
            "PREFECT_WORKER_HEARTBEAT_SECONDS": "20",
            "PREFECT_SERVER_SERVICES_FOREMAN_LOOP_SECONDS": "2",
            "MLEBENCH_STORE": bucket.url,
            "MLEBENCH_AGENT_DIRS": json.dumps([str(self.agents)]),
            "MLEBENCH_DASK_WORKERS": "1",
            "MLEBENCH_SCRATCH": str(folder / "client"),
        }

    def __enter__(self) -> Self:
        try:
            self.start_server()
        except BaseException:
            self.processes.stop()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self.processes.stop()

    def start_server(self) -> None:
        start_server(self.processes, self.port, self.env, self.database)

    def worker(self, host: str, slots: int, *options: str, home: Path | None = None) -> psutil.Process:
        """Start a worker; it is ready once the server lists it. With a home, it is that of an ordinary user."""
        name = self.host(host)
        python, scratch = [sys.executable], self.folder / host
        env = dict(self.env)
        if home is not None:
            python, scratch = [*ordinary_user.BECOME, str(home / "venv" / "bin" / "python")], home / "scratch"
            env |= {"HOME": str(home), "PREFECT_HOME": str(home / "prefect"), "PYTHONDONTWRITEBYTECODE": "1"}
            env |= {"MLEBENCH_AGENT_DIRS": json.dumps([str(home / "agents")]), "TMPDIR": str(home / "tmp")}
            certificates = str(shutil.copy(env["AWS_CA_BUNDLE"], home))
            env |= {"AWS_CA_BUNDLE": certificates, "PREFECT_API_SSL_CERT_FILE": certificates}
        command = [*python, "-m", "flows.cli", "worker", "--name", name, "--slots", str(slots), *options]
        env |= {"MLEBENCH_SCRATCH": str(scratch)}
        return self.processes.start(host, command, env, lambda: name in self.online())

    def host(self, name: str) -> str:
        """The complete name of a host: those of other tests on this machine must not share its slots."""
        return f"{name}-{self.port}"

    def clear(self) -> None:
        """Leave nothing to the next test: no workers, no waiting agents, no attempts that a worker would take."""
        self.stop_workers()
        for notes in self.agents.glob(".*-notes"):
            (notes / "go").touch()
        for run in self.flow_runs():
            if run["state_type"] in ("SCHEDULED", "PENDING", "RUNNING", "PAUSED", "CANCELLING"):
                cancelled = {"state": {"type": "CANCELLED"}, "force": True}
                self.api(f"/flow_runs/{run['id']}/set_state", cancelled)

    def stop_workers(self) -> None:
        """Stop all workers; agents go on."""
        if names := [name for name in self.processes.running() if name != "server"]:  # without names, all would stop
            self.processes.stop(*names)

    def online(self) -> set[str]:
        found = self.api(f"/work_pools/{POOL}/workers/filter", {})
        return {worker["name"] for worker in found if worker["status"] == "ONLINE"}

    def api(self, path: str, body: Any = None) -> Any:
        return ask(f"{self.env['PREFECT_API_URL']}{path}", body, credential=self.env[CREDENTIAL])

    def flow_runs(self, *tags: str) -> list[Any]:
        """The flow runs of attempts with all these tags."""
        wanted = {"flow_runs": {"tags": {"all_": list(tags)}}, "flows": {"name": {"any_": ["attempt"]}}}
        found: list[Any] = self.api("/flow_runs/filter", wanted)
        return found

    def states(self, *tags: str) -> list[str]:
        return sorted(each["state_type"] for each in self.flow_runs(*tags))

    def processes_of(self, worker: psutil.Process) -> list[psutil.Process]:
        """A worker and the processes of its flow runs, but not their agents and supervisors."""
        return [worker, *descendants(worker, "prefect.engine")]

    def kill(self, *processes: psutil.Process) -> None:
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes, timeout=30)

    def declare_dead(self) -> None:
        """Have the flow runs that seem to be in progress marked as crashed now, instead of after three heartbeats."""
        command = ("doctor", "--fix", "--silent-for", "0", "--split", "demo")
        # Without the engine: it would end what others on this machine have left.
        with self.start(*command, DOCKER_HOST="tcp://127.0.0.1:1") as process:
            output, _ = process.communicate(timeout=400)
        assert process.returncode == 0, output

    def start(self, *arguments: str, **env: str) -> subprocess.Popen[str]:
        """Start a command of a user on a machine that is no host of the pool."""
        return subprocess.Popen(
            [sys.executable, "-m", "flows.cli", *arguments],
            env={**self.env, **env},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    @contextlib.contextmanager
    def detached(self, agent: ScriptedAgent, group: str) -> Iterator[subprocess.Popen[str]]:
        """`mlebench run` of one attempt, until its agent runs; the command is killed after the block."""
        command = ("run", "-c", "digits", "--agent", agent.folder.name, "--pool", POOL, "--run-group", group)
        with self.start(*command) as process:
            try:
                until_served("the agent", lambda: len(agent.processes()) == 2, 400)
                yield process
            finally:
                process.kill()

    def mlebench(self, *arguments: str, code: int = 0) -> str:
        """The output of a command, which must end with this code."""
        with self.start(*arguments) as process:
            output, _ = process.communicate(timeout=400)
        assert process.returncode == code, output
        return output

    def store(self) -> Store:
        return Store(self.bucket.url)

    def record(self, group: str, competition: str, seed: int = 0) -> Any:
        """The record of a run; None if there is none."""
        return RunFolder(self.store(), group, competition, seed).read_run()

    def agent(self, name: str, script: str) -> ScriptedAgent:
        """A trusted agent with this start script; $NOTES is a folder of its own that the test can see."""
        return ScriptedAgent(self.agents / name, script)


class ScriptedAgent:
    """An agent that a test wrote, and what it notes."""

    def __init__(self, folder: Path, script: str) -> None:
        self.folder, self.notes = folder, folder.with_name(f".{folder.name}-notes")
        folder.mkdir()
        self.notes.mkdir()
        (folder / "agent.yaml").write_text(f"name: {folder.name}\ndescription: of a test\ntrusted: true\n")
        (folder / "start.sh").write_text(f"#!/bin/bash\nNOTES={self.notes}\n{script}")

    def starts(self) -> list[str]:
        """COMPETITION-SEED of each start, in their order."""
        path = self.notes / "starts"
        return path.read_text().split() if path.exists() else []

    def let_go(self) -> None:
        (self.notes / "go").touch()

    def note(self, name: str) -> list[str]:
        """The lines of a file in its notes."""
        path = self.notes / name
        return path.read_text().splitlines() if path.exists() else []

    def processes(self) -> list[psutil.Process]:
        """The processes of the agent that are alive."""
        pids = [int(each) for path in self.notes.glob("pids-*") for each in path.read_text().split()]
        found: list[psutil.Process] = []
        for pid in pids:
            with contextlib.suppress(psutil.NoSuchProcess):
                found.append(psutil.Process(pid))
        return living(found)


WAITING = """\
echo "$COMPETITION_ID-$SEED" >> $NOTES/starts
cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"
sleep 3600 &
echo $$ $! > "$NOTES/pids-$COMPETITION_ID-$SEED"
echo "my last words on $COMPETITION_ID"
while [ ! -e $NOTES/go ]; do sleep 0.1; done
"""
"""The script of an agent that hands in the sample, and waits for `let_go` with a child process."""


ASKING = """\
echo "$COMPETITION_ID-$SEED" >> $NOTES/starts
cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"
sleep 3600 &
echo $$ $! > "$NOTES/pids-$COMPETITION_ID-$SEED"
while [ ! -e $NOTES/go ]; do
    if [ -e $NOTES/ask ]; then
        rm $NOTES/ask
        answer=$(sh "$VALIDATE_SCRIPT" "$SUBMISSION_DIR/submission.csv")
        echo "$(grep url= "$VALIDATE_SCRIPT") $answer" >> $NOTES/answers
    fi
    sleep 0.1
done
"""
"""The script of an agent that also asks for a validation whenever the test touches the file `ask` in its notes."""


COUNTING = """\
mkdir -p "$HOME/.session"
steps=$(cat "$HOME/.session/steps" 2>/dev/null || echo 0)
echo "$steps ${MLEBENCH_RESUMED:-0}" >> $NOTES/begins
cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"
sleep 3600 &
echo $$ $! > "$NOTES/pids-$COMPETITION_ID-$SEED"
while [ ! -e $NOTES/go ]; do
    steps=$((steps + 1))
    echo $steps > "$HOME/part"
    mv "$HOME/part" "$HOME/.session/steps"
    sleep 0.1
done
"""
"""The script of an agent that counts in `.session`, and notes at which number it begins, and whether it resumes."""


def until_states(fleet: Fleet, group: str, wanted: Sequence[str]) -> None:
    """Wait until the attempts of a group are in these states."""
    until_served(f"{wanted} in {group}", lambda: fleet.states(f"group:{group}") == sorted(wanted), 300)
