"""Estimate how long the full benchmark takes on machines that you describe, and what it costs.

Downloads, splits and agents are scheduled in their order on the slots that a machine has for them. Nothing is executed.
What takes seconds is left out: starting, grading and reports, and so are failures and retries.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from common.scheduling import finish_times
from competitions import registry
from tasks.wiring.process import apply_settings

BYTES_PER_GIGABIT = 125e6
UNKNOWN_BYTES = 30e9
"""Assumed bytes of a download whose size competition.yaml does not state (22 of the 75), a conservative value."""
TABLE_BYTES_PER_CORE_SECOND = 22e6
"""Bytes of a download of tables that one core splits in a second (case c of the benchmarks)."""
FILE_BYTES_PER_CORE_SECOND = 250e6
"""The same for many files (case a of the benchmarks)."""
PREPARED_SHARE = 1.3
"""Size of a prepared dataset relative to its download; `mlebench doctor` assumes the same."""
_TABLE_CATEGORIES = (
    "Tabular",
    "Forecasting",
    "Text (Other)",
    "Text Classification",
    "Sequence->Sequence",
    "Training LLMs",
)
_TABLE_COLUMNS = (
    "machines",
    "link",
    "agents",
    "prepared after",
    "all done after",
    "agents busy",
    "machines $",
    "LLM $",
    "sum $",
)


@dataclass(frozen=True)
class Job:
    """A competition: bytes of its download, and how many of them one core splits in a second."""

    name: str
    download_bytes: float
    split_rate: float


@dataclass(frozen=True)
class Scenario:
    """The machines and the work. Rates are in bytes per second; the defaults are one machine with 8 GPUs."""

    machines: int = 1
    cores: int = 64
    agents: int = 8
    """Agents at the same time on a machine (MLEBENCH_AGENTS), as its GPUs and its memory allow."""
    downloads: int = 2
    """Downloads at the same time on a machine (MLEBENCH_DOWNLOADS)."""
    uplink: float = BYTES_PER_GIGABIT
    """The internet link that all machines share."""
    connection: float = 50e6
    """Maximum rate of one download, even on a faster link."""
    disk: float = 1e9
    """Rate of a machine's disk, reads and writes together."""
    seeds: int = 3
    agent_seconds: float = 24 * 3600.0
    prepared: bool = False
    """Whether all competitions are already prepared."""
    pool: bool = False
    """The machines are hosts of a work pool: one prepares, and all take attempts at what is prepared."""
    machine_hour: float = 20.0
    """US dollars per machine and hour."""
    run_dollars: float = 10.0
    """US dollars per run for language models."""


@dataclass(frozen=True)
class Estimate:
    """Times in seconds, from the start of the command."""

    seconds: float
    prepare_seconds: float
    """Until the last machine has prepared its share."""
    machine_seconds: float
    """Sum over all machines, each until its own end."""
    runs: int

    def busy(self, scenario: Scenario) -> float:
        """Share of the machines' slots for agents, from 0 to 1, in which an agent runs."""
        return self.runs * scenario.agent_seconds / (self.machine_seconds * scenario.agents)

    def machine_dollars(self, scenario: Scenario) -> float:
        """Cost of the machines."""
        return self.machine_seconds / 3600 * scenario.machine_hour


def jobs(split: str, unknown_bytes: float = UNKNOWN_BYTES) -> list[Job]:
    """The competitions of a split with the sizes of their downloads, from the registry."""
    split_jobs = []
    for facts in (registry.get(name).facts for name in registry.list(split)):
        size = facts.size_bytes or (unknown_bytes if facts.source == "kaggle" else 0)
        rate = TABLE_BYTES_PER_CORE_SECOND if facts.category in _TABLE_CATEGORIES else FILE_BYTES_PER_CORE_SECOND
        split_jobs.append(Job(facts.id, float(size), rate))
    return split_jobs


def shares(jobs: Sequence[Job], machines: int) -> list[list[Job]]:
    """Competitions divided among machines by size, so that each downloads about as many bytes.

    The numbers of competitions differ by at most one.
    """
    parts: list[list[Job]] = [[] for _ in range(machines)]
    ordered = sorted(jobs, key=lambda job: -job.download_bytes)
    for start in range(0, len(ordered), machines):
        row = ordered[start : start + machines]
        for part, job in zip(parts if start // machines % 2 == 0 else parts[::-1], row, strict=False):
            part.append(job)
    # Flows take competitions in the order of their names.
    return [sorted(part, key=lambda job: job.name) for part in parts if part]


def estimate(jobs: Sequence[Job], scenario: Scenario) -> Estimate:
    """The time that these competitions take."""
    parts = [sorted(jobs, key=lambda job: job.name)] if scenario.pool else shares(jobs, scenario.machines)
    prepared = [[0.0] * len(part) for part in parts] if scenario.prepared else _prepared(parts, scenario)
    prepare_seconds = max(max(ends) for ends in prepared)
    if scenario.pool:
        ready = sorted(end for ends in prepared for end in ends for _ in range(scenario.seeds))
        slots = scenario.machines * scenario.agents
        seconds = max(finish_times([(start, scenario.agent_seconds) for start in ready], slots))
        return Estimate(seconds, prepare_seconds, scenario.machines * seconds, len(ready))
    ends_of_machines = []
    for part, ends in zip(parts, prepared, strict=True):
        runs = [(0.0, scenario.agent_seconds)] * (len(part) * scenario.seeds)
        ends_of_machines.append(max(finish_times(runs, scenario.agents, start=max(ends))))
    return Estimate(max(ends_of_machines), prepare_seconds, sum(ends_of_machines), len(jobs) * scenario.seeds)


def _prepared(parts: Sequence[Sequence[Job]], scenario: Scenario) -> list[list[float]]:
    """The times at which the competitions of each machine are prepared.

    Downloads are scheduled with the rate of a connection. If the link cannot carry all of them at that rate, all their
    times are stretched. A split uses all cores, so one follows the other.
    """
    downloaded = [
        finish_times([(0.0, job.download_bytes / scenario.connection) for job in part], scenario.downloads)
        for part in parts
    ]
    last = max(map(max, downloaded))
    total = sum(job.download_bytes for part in parts for job in part)
    stretch = max(1.0, total / scenario.uplink / last) if last else 1.0
    prepared = []
    for part, ends in zip(parts, downloaded, strict=True):
        ready = sorted((end * stretch, _split_seconds(job, scenario)) for end, job in zip(ends, part, strict=True))
        prepared.append(finish_times(ready, slots=1))
    return prepared


def _split_seconds(job: Job, scenario: Scenario) -> float:
    by_cores = job.download_bytes / (job.split_rate * scenario.cores)
    by_disk = job.download_bytes * (1 + PREPARED_SHARE) / scenario.disk
    return max(by_cores, by_disk)


def table(jobs: Sequence[Job], scenarios: Sequence[Scenario]) -> str:
    """A Markdown table with one line per scenario."""
    lines = [f"| {' | '.join(_TABLE_COLUMNS)} |", "|" + "---:|" * len(_TABLE_COLUMNS)]
    for scenario in scenarios:
        result = estimate(jobs, scenario)
        machine_dollars, model_dollars = result.machine_dollars(scenario), result.runs * scenario.run_dollars
        cells = (
            f"{scenario.machines}",
            f"{scenario.uplink / BYTES_PER_GIGABIT:g} Gbit/s",
            f"{scenario.machines * scenario.agents}",
            f"{result.prepare_seconds / 3600:.1f} h",
            in_words(result.seconds),
            f"{result.busy(scenario):.0%}",
            f"{machine_dollars:,.0f}",
            f"{model_dollars:,.0f}",
            f"{machine_dollars + model_dollars:,.0f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def in_words(seconds: float) -> str:
    """A duration in hours, or in days from 72 hours.

    >>> in_words(7200), in_words(360000)
    ('2.0 h', '4.2 days')
    """
    return f"{seconds / 3600:.1f} h" if seconds < 72 * 3600 else f"{seconds / 86400:.1f} days"


def main(arguments: list[str] | None = None) -> int:
    """Print the table of scenarios, one for each number of machines and each link."""
    apply_settings()
    options = _parser().parse_args(arguments)
    scenario = Scenario(
        cores=options.cores,
        agents=options.gpus // options.gpus_per_agent if options.gpus else options.agents,
        downloads=options.downloads,
        connection=options.connection_mb * 1e6,
        disk=options.disk_mb * 1e6,
        seeds=options.seeds,
        agent_seconds=options.hours * 3600,
        prepared=options.prepared,
        pool=options.pool,
        machine_hour=options.machine_hour,
        run_dollars=options.run_dollars,
    )
    scenarios = [
        replace(scenario, machines=machines, uplink=uplink * BYTES_PER_GIGABIT)
        for uplink in options.uplink_gbit
        for machines in options.machines
    ]
    sys.stdout.write(table(jobs(options.split, options.unknown_gb * 1e9), scenarios) + "\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m flows.scaling",
        description=__doc__,
        formatter_class=lambda prog: argparse.ArgumentDefaultsHelpFormatter(prog, width=110, max_help_position=30),
    )
    add = parser.add_argument
    add("--machines", type=_positive, nargs="+", default=[1, 2, 4, 8, 15, 38], help="numbers of machines")
    add("--uplink-gbit", type=float, nargs="+", default=[1.0, 10.0], help="Gbit/s of the link that all machines share")
    add("--split", choices=registry.split_names(), default="all", help="competitions to run")
    add("--seeds", type=_positive, default=3, help="runs of each competition")
    add("--hours", type=float, default=24.0, help="duration of a run in hours")
    add("--cores", type=_positive, default=64, help="CPU cores of a machine")
    add("--agents", type=_positive, default=8, help="agents at the same time on a machine")
    add("--gpus", type=_positive, help="GPUs of a machine; sets the number of agents instead of --agents")
    add("--gpus-per-agent", type=_positive, default=1, help="GPUs of one agent, with --gpus")
    add("--downloads", type=_positive, default=2, help="downloads at the same time on a machine")
    add("--connection-mb", type=float, default=50.0, help="maximum MB/s of one download")
    add("--disk-mb", type=float, default=1000.0, help="MB/s of a machine's disk, reads and writes together")
    add("--unknown-gb", type=float, default=UNKNOWN_BYTES / 1e9, help="GB of a download of unknown size")
    add("--prepared", action="store_true", help="all competitions are already prepared")
    add("--pool", action="store_true", help="the machines are the hosts of a work pool, see docs/fleet.md")
    add("--machine-hour", type=float, default=20.0, help="price of a machine in US dollars per hour")
    add("--run-dollars", type=float, default=10.0, help="price of a run's language model calls in US dollars")
    return parser


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not positive")
    return number


if __name__ == "__main__":
    sys.exit(main())
