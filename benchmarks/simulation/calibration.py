"""Measuring the costs of the stages: the real command on the demo split, with an agent that takes a known time."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from benchmarks.simulation.costs import Costs
from benchmarks.simulation.load import Load
from competitions import registry
from storage.runs.folders import StoredRun, stored_runs
from storage.store import Store

SPLIT = "demo"
AGENT = "waits"
_STATES = ("queued", "waiting", "download", "split", "checksum", "done", "running", "graded")
_DEFINITION = "description: Waits, then hands in the sample submission.\ntrusted: true\nlimits:\n  cpus: 1\n"


class CalibrationFailed(Exception):
    """The measured command failed; the message is the end of its output."""


@dataclass(frozen=True)
class Configuration:
    """The parameters of a measured run of the demo."""

    seeds: int
    agents: int
    downloads: int = 2
    preparations: int = 4

    @property
    def words(self) -> str:
        """The configuration in words."""
        return f"seeds {self.seeds}, agents at one time {self.agents}"


@dataclass(frozen=True)
class Measured:
    """A run of the command: its wall time in seconds, when each state was reported, and the records of its runs."""

    seconds: float
    states: list[tuple[float, str, str]]
    """(seconds since the start, row, state) in the order of time."""
    runs: list[dict[str, float]]
    """For each run, when it was started, finished and stored, in seconds since the start of the command; sorted."""
    slowdown: float = 1.0
    """The factor by which other load on the machine slowed the command down, see `Load`."""

    def times(self, state: str) -> dict[str, float]:
        """When each row reached a state."""
        return {row: at for at, row, found in self.states if found == state}

    @property
    def agent_seconds(self) -> float:
        """Mean duration of the agents."""
        return statistics.mean(run["finished"] - run["started"] for run in self.runs)


def write_agent(folder: Path, agent_seconds: float) -> None:
    """Write the agent `AGENT`, which takes this time, into a folder of agents, which is created."""
    agent = folder / AGENT
    agent.mkdir(parents=True)
    (agent / "agent.yaml").write_text(_DEFINITION)
    (agent / "start.sh").write_text(
        f'sleep {agent_seconds}\ncp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"\n'
    )


def measure(folder: Path, agent_seconds: float, configuration: Configuration) -> Measured:
    """Run `mlebench run` on the demo with all its files in `folder`, which is created. Raises `CalibrationFailed`."""
    write_agent(folder / "agents", agent_seconds)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MLEBENCH_", "PREFECT_"))}
    env |= {
        "PREFECT_HOME": str(folder / "prefect"),
        "MLEBENCH_SCRATCH": str(folder / "scratch"),
        "MLEBENCH_AGENT_DIRS": json.dumps([str(folder / "agents")]),
        "MLEBENCH_AGENTS": str(configuration.agents),
        "MLEBENCH_DOWNLOADS": str(configuration.downloads),
        "MLEBENCH_PREPARATIONS": str(configuration.preparations),
    }
    command = [sys.executable, "-m", "flows.cli", "run", "--split", SPLIT, "--agent", AGENT, "--run-group", "measured"]
    command += ["--seeds", str(configuration.seeds), "--store", str(folder / "store")]
    begun, start = time.time(), time.monotonic()
    state = re.compile(rf"(?P<row>({'|'.join(registry.list(SPLIT))})( seed \d+)?): (?P<state>{'|'.join(_STATES)})")
    states: list[tuple[float, str, str]] = []
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env) as process:
        assert process.stdout is not None
        load = Load(process.pid)
        for line in process.stdout:
            lines.append(line)
            # Threads report concurrently, so one line may contain the reports of two of them.
            states += [(time.monotonic() - start, found["row"], found["state"]) for found in state.finditer(line)]
        slowdown = load.stop()
    seconds = time.monotonic() - start
    if process.returncode:
        raise CalibrationFailed("".join(lines[-20:]))
    runs = [_run(run, begun) for run in stored_runs(Store(str(folder / "store")))]
    return Measured(seconds, states, sorted(runs, key=lambda run: run["started"]), slowdown)


def _run(run: StoredRun, begun: float) -> dict[str, float]:
    record, store = run.record, run.folder.store
    times = {"started": record.started_at, "finished": record.finished_at}
    path = store.local(store.relative(run.folder.run_url))
    assert path is not None
    return {**{n: t.timestamp() - begun for n, t in times.items() if t}, "stored": path.stat().st_mtime - begun}


SERIAL = Configuration(seeds=1, agents=1, downloads=1, preparations=1)
"""No concurrency, so that the observed time of a stage is its own cost without waiting for others."""


def costs_of(measured: Measured, defaults: Costs | None = None) -> Costs:
    """Per-stage costs from a run with `SERIAL`; rates by bytes keep their defaults, because the demo data are tiny."""
    download, split, checksum, done = map(measured.times, ("download", "split", "checksum", "done"))
    begins = sorted(download.values())
    last = max(checksum, key=lambda name: checksum[name])
    waiting, graded = measured.times("waiting"), measured.times("graded")
    runs = measured.runs
    collect = statistics.median(run["stored"] - run["finished"] for run in runs)
    between = statistics.median(after["started"] - before["finished"] for before, after in pairwise(runs))
    return replace(
        defaults or Costs(),
        start=begins[0],
        download=statistics.median(after - before for before, after in pairwise(begins)),
        split=statistics.median(checksum[name] - split[name] for name in split),
        checksum=max(done[last] - checksum[last], 0.0),
        turn=max(min(waiting.values()) - done[last], 0.0),
        collect=collect,
        launch=max(between - collect, 0.0),
        grade=statistics.median(at - run["stored"] for at, run in zip(sorted(graded.values()), runs, strict=True)),
        report=measured.seconds - max(graded.values()),
    )
