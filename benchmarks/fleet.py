"""Measure a fleet on this machine: many attempts of a short agent, over workers with slots of a Prefect work pool.

Starts a Prefect server on PostgreSQL and the workers, prepares the demo split, calibrates the simulator with a few
attempts on one worker, predicts the time of all attempts on all workers, makes them, and prints both. On one machine
the time is that of its cores, which start a process for each attempt. The exit code is 1 if the prediction is off by
more than 20 %.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any, Self

import psutil

from benchmarks.simulation.calibration import AGENT, write_agent
from benchmarks.simulation.costs import Costs, Job
from benchmarks.simulation.pipeline import Scenario, predict
from benchmarks.simulation.pool import ideal_seconds
from benchmarks.simulation.validation import TARGET
from common.guard import new_credential
from competitions import registry
from deployments.background import BackgroundProcesses, free_port
from deployments.server import CREDENTIAL, ask, start_server

_SPLIT = "demo"
_POOL = "agents"
_POLL_SECONDS = 2
"""Interval between two looks of a worker for work. Prefect's default of 15 s is for attempts of hours."""
_PAGE = 200


@dataclass(frozen=True)
class Measured:
    """Attempts on a fleet. Times in seconds; CPU seconds are per attempt."""

    attempts: int
    seconds: float
    """From the first flow run's creation to the last one's end."""
    start_up: float
    """Median from a flow run's process to its flow."""
    hosts_cpu: float
    server_cpu: float
    command_cpu: float

    @property
    def lines(self) -> list[str]:
        """The figures, one a line."""
        return [
            f"{self.attempts} attempts in {self.seconds:.0f} s, {self.attempts / self.seconds:.2f} a second",
            f"an attempt: {self.hosts_cpu:.1f} CPU s on its host, {self.server_cpu:.2f} of the server, "
            f"{self.command_cpu:.2f} of the command that hands out; its flow begins {self.start_up:.1f} s after its "
            "process",
            f"the server: {self.server_cpu * self.attempts / self.seconds:.0%} of a core",
        ]


class Fleet:
    """A Prefect server, workers, and a store with the demo, all on this machine."""

    def __init__(self, folder: Path, agent_seconds: float, database: str) -> None:
        self.folder, self.database, self.port = folder, database, free_port()
        self.processes = BackgroundProcesses(folder / "services")
        write_agent(folder / "agents", agent_seconds)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MLEBENCH_", "PREFECT_"))}
        self.env = {
            **kept,
            "PREFECT_HOME": str(folder / "prefect"),
            "PREFECT_API_URL": f"http://127.0.0.1:{self.port}/api",
            CREDENTIAL: new_credential(),
            "PREFECT_WORKER_QUERY_SECONDS": str(_POLL_SECONDS),
            "MLEBENCH_STORE": str(folder / "store"),
            "MLEBENCH_SCRATCH": str(folder / "client"),
            "MLEBENCH_AGENT_DIRS": json.dumps([str(folder / "agents")]),
        }

    def __enter__(self) -> Self:
        try:
            self.server = start_server(self.processes, self.port, self.env, self.database)
            self.mlebench("prepare", "--split", _SPLIT)
        except BaseException:
            self.processes.stop()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self.processes.stop()

    def api(self, path: str, body: Any = None) -> Any:
        """The answer of the Prefect server."""
        return ask(f"{self.env['PREFECT_API_URL']}{path}", body, credential=self.env[CREDENTIAL])

    def mlebench(self, *arguments: str) -> None:
        """Run a command. Raises `SystemExit` with the end of its output if it fails."""
        done = subprocess.run(
            [sys.executable, "-m", "flows.cli", *arguments], env=self.env, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"mlebench {' '.join(arguments)} failed:\n{(done.stdout + done.stderr)[-2000:]}")

    def measure(self, seeds: int, workers: int, slots: int, agent: str) -> Measured:
        """Make attempts at the competitions of the demo, each with this many seeds, on this many workers."""
        names = [f"host-{number}" for number in range(workers)]
        hosts = [self._worker(name, slots) for name in names]
        group = f"measured-{seeds}"
        before = [_cpu(self.server), *map(_children_cpu, hosts), _commands_cpu()]
        self.mlebench(
            "run", "--split", _SPLIT, "--agent", agent, "--seeds", str(seeds), "--pool", _POOL, "--run-group", group
        )
        after = [_cpu(self.server), *map(_children_cpu, hosts), _commands_cpu()]
        server, *on_hosts, command = (b - a for a, b in zip(before, after, strict=True))
        runs = self._flow_runs(group)
        self.processes.stop(*names)
        count = len(runs)
        seconds = max(_time(run["end_time"]) for run in runs) - min(_time(run["created"]) for run in runs)
        return Measured(
            count,
            seconds,
            median(map(self._start_up, runs[:50])),
            sum(on_hosts) / count,
            server / count,
            command / count,
        )

    def _worker(self, name: str, slots: int) -> psutil.Process:
        command = [sys.executable, "-m", "flows.cli", "worker", "--name", name, "--slots", str(slots), "--label", "cpu"]
        env = {**self.env, "MLEBENCH_SCRATCH": str(self.folder / name)}
        return self.processes.start(name, command, env, lambda: name in self._online())

    def _online(self) -> set[str]:
        found = self.api(f"/work_pools/{_POOL}/workers/filter", {})
        return {worker["name"] for worker in found if worker["status"] == "ONLINE"}

    def _flow_runs(self, group: str) -> list[Any]:
        found: list[Any] = []
        wanted = {"flow_runs": {"tags": {"all_": [f"group:{group}"]}}, "flows": {"name": {"any_": ["attempt"]}}}
        while True:
            page = self.api("/flow_runs/filter", {**wanted, "limit": _PAGE, "offset": len(found)})
            found += page
            if len(page) < _PAGE:
                return found

    def _start_up(self, run: Any) -> float:
        states = self.api(f"/flow_run_states/?flow_run_id={run['id']}")
        at = {state["type"]: _time(state["timestamp"]) for state in states}
        return at["RUNNING"] - at["PENDING"]


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _cpu(process: psutil.Process) -> float:
    """CPU seconds of a process and its living and ended children."""
    times = [process.cpu_times(), *(child.cpu_times() for child in process.children(recursive=True))]
    return sum(each.user + each.system for each in times) + times[0].children_user + times[0].children_system


def _children_cpu(process: psutil.Process) -> float:
    """CPU seconds of a worker and of the flow runs that have ended."""
    times = process.cpu_times()
    return float(times.user + times.system + times.children_user + times.children_system)


def _commands_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def costs_of(measured: Measured, poll: float = _POLL_SECONDS) -> Costs:
    """Costs of the simulation from a calibration; what an attempt costs on its host is one sum."""
    return replace(
        Costs(),
        start=0.0,
        launch=0.0,
        collect=0.0,
        grade=0.0,
        report=0.0,
        hand_out=measured.command_cpu,
        flow_run=measured.hosts_cpu,
        server=measured.server_cpu,
        poll=poll,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was predicted and measured; returns the exit code."""
    options = _parser().parse_args(arguments)
    from tests.deployments.postgresql import postgresql  # not part of the installed package

    with contextlib.nullcontext(options.database) if options.database else postgresql() as database:
        return _compare(options, database)


def _compare(options: argparse.Namespace, database: str) -> int:
    ids = registry.list(_SPLIT)
    seeds = -(-options.attempts // len(ids))
    with tempfile.TemporaryDirectory(prefix="mlebench-fleet-") as folder:
        begun = time.monotonic()
        with Fleet(Path(folder), options.agent_seconds, database) as fleet:
            print(f"server started and demo prepared after {time.monotonic() - begun:.0f} s", flush=True)
            calibration = fleet.measure(options.calibration_seeds, 1, options.slots, AGENT)
            print("\n".join(["calibration on one worker:", *calibration.lines]), flush=True)
            scenario = Scenario(
                machines=options.workers,
                cores=os.cpu_count() or 1,
                agents=options.slots,
                seeds=seeds,
                agent_seconds=options.agent_seconds,
                prepared=True,
                pool=True,
                one_machine=True,
            )
            jobs = [Job(name, 0.0, 1.0) for name in ids]
            predicted = predict(jobs, costs_of(calibration), scenario).seconds
            measured = fleet.measure(seeds, options.workers, options.slots, AGENT)
    ideal = ideal_seconds(scenario, measured.attempts)
    error = predicted / measured.seconds - 1
    print("\n".join([f"{options.workers} workers with {options.slots} slots:", *measured.lines]))
    print(f"ideal {ideal:.0f} s (agents alone), predicted {predicted:.0f} s, error {error:+.1%}, target {TARGET:.0%}")
    return 0 if abs(error) <= TARGET else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=__doc__)
    parser.add_argument("--attempts", type=int, default=225, help="attempts, rounded up to whole seeds (default: 225)")
    parser.add_argument("--workers", type=int, default=3, help="workers (default: 3)")
    parser.add_argument("--slots", type=int, default=4, help="slots of a worker (default: 4)")
    parser.add_argument("--agent-seconds", type=float, default=1.0, help="duration of an agent (default: 1)")
    parser.add_argument("--calibration-seeds", type=int, default=6, help="seeds of the calibration (default: 6)")
    parser.add_argument("--database", help="URL of the server's database (default: a PostgreSQL server of its own)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
