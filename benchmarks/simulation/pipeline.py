"""The pipeline's DAG as processes of the engine, with the limits of the real pipeline.

Each machine runs the full benchmark on its share of the competitions: download -> split -> checksum for each; when all
are prepared, agent-run -> grade for each seed; then the report. Downloads share the internet link of the site; splits
share the workers and the disk of their machine, and agents its slots.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.simulation.costs import Costs, Job
from benchmarks.simulation.engine import Engine, Join, Pipe, Process, Sleep, Slots, Steps, Take, Work


@dataclass(frozen=True)
class Scenario:
    """The machines and the work. Rates are in bytes per second; the defaults are one machine with 8 GPUs."""

    machines: int = 1
    cores: int = 64
    agents: int = 8
    """Concurrent agents on a machine (MLEBENCH_AGENTS), as its GPUs and its memory allow."""
    downloads: int = 2
    """Concurrent downloads on a machine (MLEBENCH_DOWNLOADS)."""
    preparations: int = 4
    """Concurrent splits on a machine (MLEBENCH_PREPARATIONS)."""
    uplink: float = 125e6
    """The internet link that all machines share: 1 Gbit/s."""
    connection: float = 50e6
    """Maximum rate of one download, even on a faster link."""
    disk: float = 1e9
    """Rate of a machine's disk, reads and writes together."""
    store: float = math.inf
    """A machine's link to the object store; agents' data are fetched once per machine. Infinite for a local disk."""
    seeds: int = 3
    agent_seconds: float = 24 * 3600.0
    prepared: bool = False
    """Whether all competitions are already prepared."""
    together: bool = False
    """Agents start as soon as their competition is prepared. The real flow prepares all competitions first."""
    pool: bool = False
    """The machines are hosts of a work pool, see `benchmarks.simulation.pool`."""
    one_machine: bool = False
    """The hosts of the pool share the cores of one machine, as in `benchmarks.fleet`."""
    machine_hour: float = 20.0
    """US dollars per machine and hour."""
    run_dollars: float = 0.0
    """US dollars per run for language models."""


@dataclass
class Prediction:
    """The predicted times and costs of a scenario."""

    seconds: float = 0.0
    prepare_seconds: float = 0.0
    """Time until the last machine has prepared its share."""
    machine_seconds: float = 0.0
    """Sum over all machines, each until its own end."""
    agent_seconds: float = 0.0
    runs: int = 0
    ends: list[tuple[str, float]] = field(default_factory=list)
    """(competition, time of the grade) of each run."""

    def busy(self, scenario: Scenario) -> float:
        """Utilisation of the agents' slots, from 0 to 1, until the end of each machine."""
        return self.agent_seconds / (self.machine_seconds * scenario.agents) if self.machine_seconds else 0.0

    def dollars(self, scenario: Scenario) -> float:
        """Cost of machines and language models together."""
        return self.machine_seconds / 3600 * scenario.machine_hour + self.runs * scenario.run_dollars


def shares(jobs: Sequence[Job], machines: int) -> list[list[Job]]:
    """Competitions distributed over machines by size, to balance bytes; their numbers differ by at most one."""
    parts: list[list[Job]] = [[] for _ in range(machines)]
    ordered = sorted(jobs, key=lambda job: -job.download_bytes)
    for first in range(0, len(ordered), machines):
        row = ordered[first : first + machines]
        for part, job in zip(parts if first // machines % 2 == 0 else parts[::-1], row, strict=False):
            part.append(job)
    return [sorted(part, key=lambda job: job.name) for part in parts if part]  # flows go by name


def predict(jobs: Sequence[Job], costs: Costs, scenario: Scenario) -> Prediction:
    """Simulate the full benchmark of these competitions."""
    if scenario.pool:
        from benchmarks.simulation.pool import predict_pool

        return predict_pool(jobs, costs, scenario)
    engine, found = Engine(), Prediction()
    uplink = Pipe(engine, scenario.uplink)
    for share in shares(jobs, scenario.machines):
        engine.start(Machine(engine, uplink, costs, scenario, found).run(share))
    found.seconds = engine.run()
    return found


class Machine:
    """One machine's resources, and the steps that use them."""

    def __init__(
        self,
        engine: Engine,
        uplink: Pipe,
        costs: Costs,
        scenario: Scenario,
        found: Prediction,
        cpu: Pipe | None = None,
    ) -> None:
        """`cpu`: the cores, if the machine shares them with others."""
        self.engine, self.uplink, self.costs, self.scenario, self.found = engine, uplink, costs, scenario, found
        self.cpu = cpu or Pipe(engine, scenario.cores)
        self.disk = Pipe(engine, scenario.disk)
        self.store = Pipe(engine, scenario.store)
        self.downloads = Slots(scenario.downloads)
        self.preparations = Slots(scenario.preparations)
        self.agents = Slots(scenario.agents)

    def run(self, jobs: Sequence[Job]) -> Steps:
        """The full benchmark of the machine's share."""
        yield self.compute(self.costs.start)
        if self.scenario.together:
            yield self.engine.all(*(self._whole(job) for job in jobs))
        else:
            yield self.engine.all(*(self.prepare(job) for job in jobs))
            yield self.compute(self.costs.turn)
            yield self.engine.all(*(self._attempt(job) for job in jobs))
        yield self.compute(self.costs.report)
        self.found.machine_seconds += self.engine.now

    def _whole(self, job: Job) -> Steps:
        yield self.engine.all(self.prepare(job))
        yield self.engine.all(self._attempt(job))

    def compute(self, seconds: float) -> Work:
        """CPU work of one process, which uses at most one core."""
        return Work(self.cpu, seconds, 1.0)

    def prepare(self, job: Job) -> Steps:
        """Download, split and check a competition."""
        if not self.scenario.prepared:
            costs = self.costs
            yield Take(self.downloads)
            yield self.compute(costs.download)
            yield Work(self.uplink, job.download_bytes, self.scenario.connection)
            self.downloads.release()
            yield Take(self.preparations)
            yield self.compute(costs.split)
            # Chunks go to all workers, so a single split can use all cores. Reading, computing and writing overlap.
            yield self.engine.all(
                self._one(Work(self.cpu, job.download_bytes / job.split_rate)),
                self._one(Work(self.disk, job.download_bytes * (1 + costs.prepared_share))),
            )
            self.preparations.release()
            yield self.compute(costs.checksum)
        self.found.prepare_seconds = max(self.found.prepare_seconds, self.engine.now)

    def _one(self, work: Work) -> Steps:
        yield work

    def _attempt(self, job: Job) -> Steps:
        copy: list[Process] = []
        yield self.engine.all(*(self._seed(job, copy) for _ in range(self.scenario.seeds)))

    def _seed(self, job: Job, copy: list[Process]) -> Steps:
        """One run. The first one of a competition fetches its data; the others on the machine wait for that."""
        yield Take(self.agents)
        if not copy:
            public = job.download_bytes * self.costs.prepared_share * self.costs.public_share
            copy.append(self.engine.start(self._one(Work(self.store, public))))
        yield Join((copy[0],))
        yield self.compute(self.costs.launch)
        yield Sleep(self.scenario.agent_seconds)
        yield self.compute(self.costs.collect)
        self.agents.release()
        self.found.agent_seconds += self.scenario.agent_seconds
        yield self.compute(self.costs.grade)
        self.found.runs += 1
        self.found.ends.append((job.name, self.engine.now))
