"""An installation started by `make up`, and what a user does with it over its HTTP API."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

from common.guard import basic
from deployments.server import ask
from deployments.up import Installation
from tests.prefect_home import make_home
from tests.waiting import until

ROOT = Path(__file__).parents[2]
FINAL = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")


def until_served(what: str, ready: Callable[[], Any], seconds: float = 240.0) -> Any:
    """The first true answer of a service: services tell of no event that could be waited for instead."""
    return until(ready, seconds, what=what, pause=0.5)  # each answer takes a server 5 to 20 ms


def log_of(api: Callable[..., Any], run: str, last: str) -> str:
    """The log of a flow run, as the UI shows it, with `last`: Prefect sends lines in batches, some after the state."""
    wanted = {"logs": {"flow_run_id": {"any_": [run]}}, "sort": "TIMESTAMP_ASC"}
    log = ""

    def has_last() -> bool:
        nonlocal log
        log = "\n".join(each["message"] for each in api("/logs/filter", wanted))
        return last in log

    until_served(f"{last!r} in the log of {run}", has_last)
    return log


class Running:
    """A running installation with a store of its own."""

    def __init__(self, folder: Path, **env: str) -> None:
        self.folder, self.state, self.store = folder, folder / "state", folder / "store"
        self.env = {
            **os.environ,
            "MLEBENCH_STORE": str(self.store),
            "MLEBENCH_SCRATCH": str(folder / "s"),
            "MLEBENCH_SERVER_HOSTS": json.dumps(["proxy.example:4300"]),
            "MLEBENCH_AGENT_DIRS": json.dumps([str(folder.parent)]),  # agents that a test writes are trusted
            "PREFECT_WORKER_QUERY_SECONDS": "2",  # a flow run waits for the next query
            **env,
        }
        self.up()
        self.installation = Installation(self.state, dask_workers=1)

    def make(self, target: str, *variables: str) -> subprocess.CompletedProcess[str]:
        """`make target`, in the environment of these tests: what make would install is taken for installed."""
        command = ["make", "--silent", "--assume-old=.venv/installed", target, f"BIN={Path(sys.executable).parent}"]
        command += [f"STATE={self.state}", *variables]
        return subprocess.run(command, env=self.env, cwd=ROOT, capture_output=True, text=True, timeout=580)

    def up(self) -> str:
        result = self.make("up", "PORT=0", "DASK_WORKERS=1")
        assert result.returncode == 0, result.stderr
        return result.stdout

    def down(self) -> str:
        return self.make("down").stdout

    def api(self, path: str, body: Any = None, method: str | None = None) -> Any:
        for attempt in range(6):
            try:
                installation = self.installation
                return ask(f"{installation.url}/api{path}", body, method, credential=installation.credential)
            except urllib.error.HTTPError as error:
                # "Try again": SQLite is locked. Prefect's own client waits just so.
                if error.code != 503 or attempt == 5:
                    raise
                time.sleep(1)
        raise AssertionError

    def get(self, url: str, **headers: str) -> httpx.Response:
        """The answer of a server of the installation to one who knows the login, as a browser asks."""
        login = {"Authorization": basic(self.installation.credential)}
        return httpx.get(url, headers={**login, **headers}, trust_env=False, timeout=30, follow_redirects=True)

    def trigger(self, deployment: str, **parameters: Any) -> str:
        """Start a run of `flow/deployment`; returns its id."""
        found = self.api(f"/deployments/name/{deployment}")
        run = self.api(f"/deployments/{found['id']}/create_flow_run", {"parameters": parameters})
        return str(run["id"])

    def flow_run(self, run: str) -> Any:
        return self.api(f"/flow_runs/{run}")

    def ended(self, run: str) -> Any:
        """The state in which a flow run ended."""
        until_served(f"the end of {run}", lambda: self.flow_run(run)["state_type"] in FINAL, 400)
        return self.flow_run(run)["state"]

    def require_completed(self, run: str) -> None:
        """Wait for the end of a flow run, which is to be good."""
        state = self.ended(run)
        assert state["type"] == "COMPLETED", f"{state['message']}\n{self.log_of(run, '')}\n{self.log()}"

    def mlebench(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        """A command of a user of this installation."""
        return subprocess.run(
            [sys.executable, "-m", "flows.cli", *arguments],
            env={**self.env, **self.installation.environment(), **env},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=240,
        )

    def log_of(self, run: str, last: str) -> str:
        return log_of(self.api, run, last)

    def log(self, name: str = "worker") -> str:
        return (self.state / f"{name}.log").read_text()


@contextlib.contextmanager
def installation(folder: Path, database: Path | None = None, **env: str) -> Iterator[Running]:
    """An installation for the block. Its server begins with a copy of this empty database; None: it makes its own."""
    folder.mkdir(parents=True, exist_ok=True)
    if database is not None:
        make_home(folder / "state" / "prefect", database)
    running = Running.__new__(Running)
    try:
        running.__init__(folder, **env)  # type: ignore[misc]
        yield running
    finally:
        running.down()
