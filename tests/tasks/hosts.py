"""Hosts that make the same run one after the other, each with processes and a scratch directory of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from sandbox.docker import network
from sandbox.docker.engine import connect
from sandbox.supervision.control import Layout, Supervisor, read
from storage.runs.checkpoints import Checkpoint, Checkpoints
from storage.runs.folders import RunFolder
from storage.store import Store
from tasks.agent_run import work_folder
from tasks.wiring.attempts import attempts_of
from tasks.wiring.context import RunContext
from tasks.wiring.requests import Attempt, RunRequest
from tests import roots
from tests.bundles import bundle
from tests.stores import put_dataset
from tests.waiting import until

ROOT = Path(__file__).parents[2]
ORCHESTRATOR = """
import json, sys
from tasks.agent_run import run_agent
from tasks.wiring.attempts import attempts_of
from tasks.wiring.context import RunContext
from tasks.wiring.requests import RunRequest
request = RunRequest.model_validate(json.loads(sys.argv[1]))
print(run_agent(attempts_of(RunContext.of(request), "diabetes")[0]))
"""


class Host:
    """A host that makes the run in a process of its own, with its own scratch directory and name."""

    def __init__(self, world: World, name: str, **env: str) -> None:
        self.name, self.world = name, world
        self.scratch = world.folder / name
        if world.request.isolation.backend == "rootless":
            roots.lend(self.scratch)
        environment = {**os.environ, "MLEBENCH_SCRATCH": str(self.scratch), "MLEBENCH_HOST_NAME": name, **env}
        command = [sys.executable, "-c", ORCHESTRATOR, world.request.model_dump_json()]
        self.process = subprocess.Popen(
            command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    @property
    def layout(self) -> Layout:
        """The run's folder on this host."""
        return Layout(self.scratch / "runs" / work_folder(self.world.attempt, self.world.store).name)

    def wait(self, note: str = "works", seconds: float = 60) -> None:
        """Wait until the agent has made a file of that name in its folder for temporary files."""
        found = self.layout.home / "tmp" / note
        until(found.exists, seconds, may_yet=self.lives, what=f"the agent's note {note}")

    def checkpointed(self) -> Checkpoint:
        """Wait for a checkpoint of this host that was begun from now on: the next one may be half written."""
        known = self.world.checkpoint()
        seen = {known.file} if known is not None else set[str]()
        before = len(seen)

        def found() -> Checkpoint | None:
            newest = self.world.checkpoint()
            if newest is None or newest.host != self.name:
                return None
            seen.add(newest.file)
            return newest if len(seen) >= before + 2 else None

        return until(found, 60, may_yet=self.lives, what="a checkpoint")

    def lose(self) -> None:
        """End everything of the run on this host at once, as a power failure does."""
        if self.world.request.isolation.backend == "docker":
            self.process.kill()
            network.remove(connect(), self.layout.workdir)
            self.process.communicate()
            return
        supervisor = read(self.layout.supervisor, Supervisor)
        assert supervisor is not None
        agents = psutil.Process(supervisor.pid).children(recursive=True)
        for pid in (self.process.pid, supervisor.pid, *(each.pid for each in agents)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.communicate()

    def finish(self) -> list[dict[str, Any]]:
        """Let an agent end that waits for it; returns as `ended`."""
        (self.layout.home / "tmp" / "go").touch()
        return self.ended(120)

    def ended(self, seconds: float) -> list[dict[str, Any]]:
        """Wait for the end of the run; returns what the agents of all tries have said."""
        output, errors = self.process.communicate(timeout=seconds)
        assert output.strip() == "completed", errors
        log = self.world.folder_of_run().local_log()
        return [json.loads(line) for line in log.splitlines() if line.startswith("{")]

    def lives(self) -> bool:
        """Whether its process is there."""
        return self.process.poll() is None


class _Folder(RunFolder):
    def local_log(self) -> str:
        return self.store.read(f"{self.files_url}/logs/agent.log").decode()


class World:
    """A store with a prepared competition, and the run that its hosts make."""

    def __init__(self, store: Store, folder: Path, agent: str, **request: Any) -> None:
        self.store, self.folder = store, folder
        raw = folder / "diabetes.zip"
        raw.write_bytes(bundle("diabetes"))
        put_dataset(store, "diabetes", raw)
        fields = {"checkpoint_every": 0.2, "time_limit_seconds": 900, **request}
        self.request = RunRequest(agent=agent, run_group="g", store=store.root, **fields)
        self.hosts: list[Host] = []

    @property
    def attempt(self) -> Attempt:
        return attempts_of(RunContext.of(self.request), "diabetes")[0]

    def host(self, name: str, **env: str) -> Host:
        self.hosts.append(Host(self, name, **env))
        return self.hosts[-1]

    def checkpoint(self) -> Checkpoint | None:
        return Checkpoints(RunFolder(self.store, "g", "diabetes", 0)).newest(self.attempt.key)

    def folder_of_run(self) -> _Folder:
        folder = _Folder(self.store, "g", "diabetes", 0)
        record = folder.read_run()
        assert record is not None
        return replace(folder, files=record.files or "")
