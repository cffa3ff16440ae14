"""The pipeline's DAG as processes of the engine, with the limits that the real one has.

Each machine runs the full benchmark on its share of the competitions: download -> split -> checksum for each; when all
are prepared, agent-run -> grade for each and every seed; then the report. Downloads share the site's link to the
internet, splits the workers and the disk of their machine, agents the slots of theirs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.simulation.costs import Costs, Job
from benchmarks.simulation.engine import Engine, Join, Pipe, Process, Sleep, Slots, Steps, Take, Work


@dataclass(frozen=True)
class Scenario:
    """What there is to work with. Rates are bytes a second; the defaults are one machine with 8 GPUs."""

    machines: int = 1
    cores: int = 64
    agents: int = 8
    """Agents at one time on a machine (MLEBENCH_AGENTS): its GPUs by those of an agent, and what its memory allows."""
    downloads: int = 2
    """Downloads at one time on a machine (MLEBENCH_DOWNLOADS)."""
    preparations: int = 4
    """Competitions split at one time on a machine (MLEBENCH_PREPARATIONS)."""
    uplink: float = 125e6
    """The internet link that all machines share: 1 Gbit/s."""
    connection: float = 50e6
    """What one download gets at most, whatever the link."""
    disk: float = 1e9
    """Reading and writing of a machine's disk together."""
    store: float = math.inf
    """A machine's link to the object store, which agents' data come over once a machine; infinite: its own disk."""
    seeds: int = 3
    agent_seconds: float = 24 * 3600.0
    prepared: bool = False
    """Whether all is prepared beforehand."""
    together: bool = False
    """Agents begin as soon as their competition is prepared, without waiting for the others: not what the flow does."""
    machine_hour: float = 20.0
    """US dollars for a machine's hour."""
    run_dollars: float = 0.0
    """US dollars that a run spends on language models."""


@dataclass
class Prediction:
    """What a scenario comes to."""

    seconds: float = 0.0
    prepare_seconds: float = 0.0
    """Until the last machine has prepared its share."""
    machine_seconds: float = 0.0
    """Of all machines, each until its own end."""
    agent_seconds: float = 0.0
    runs: int = 0
    ends: list[tuple[str, float]] = field(default_factory=list)
    """(competition, time) at which each grade was there."""

    def busy(self, scenario: Scenario) -> float:
        """The share of the agents' slots that was used, from 0 to 1, until the end of each machine."""
        return self.agent_seconds / (self.machine_seconds * scenario.agents) if self.machine_seconds else 0.0

    def dollars(self, scenario: Scenario) -> float:
        """Machines and language models together."""
        return self.machine_seconds / 3600 * scenario.machine_hour + self.runs * scenario.run_dollars


def shares(jobs: Sequence[Job], machines: int) -> list[list[Job]]:
    """The competitions dealt to machines, to and fro by size: numbers that differ by one at most, alike in bytes."""
    hands: list[list[Job]] = [[] for _ in range(machines)]
    ordered = sorted(jobs, key=lambda job: -job.download_bytes)
    for first in range(0, len(ordered), machines):
        row = ordered[first : first + machines]
        for hand, job in zip(hands if first // machines % 2 == 0 else hands[::-1], row, strict=False):
            hand.append(job)
    return [sorted(hand, key=lambda job: job.name) for hand in hands if hand]  # flows go by name


def predict(jobs: Sequence[Job], costs: Costs, scenario: Scenario) -> Prediction:
    """Simulate the full benchmark of these competitions."""
    engine, found = Engine(), Prediction()
    uplink = Pipe(engine, scenario.uplink)
    for share in shares(jobs, scenario.machines):
        engine.start(_Machine(engine, uplink, costs, scenario, found).run(share))
    found.seconds = engine.run()
    return found


class _Machine:
    """One machine's resources, and the steps that use them."""

    def __init__(self, engine: Engine, uplink: Pipe, costs: Costs, scenario: Scenario, found: Prediction) -> None:
        self.engine, self.uplink, self.costs, self.scenario, self.found = engine, uplink, costs, scenario, found
        self.cpu = Pipe(engine, scenario.cores)
        self.disk = Pipe(engine, scenario.disk)
        self.store = Pipe(engine, scenario.store)
        self.downloads = Slots(scenario.downloads)
        self.preparations = Slots(scenario.preparations)
        self.agents = Slots(scenario.agents)

    def run(self, jobs: Sequence[Job]) -> Steps:
        yield self._think(self.costs.start)
        if self.scenario.together:
            yield self.engine.all(*(self._whole(job) for job in jobs))
        else:
            yield self.engine.all(*(self._prepare(job) for job in jobs))
            yield self._think(self.costs.turn)
            yield self.engine.all(*(self._attempt(job) for job in jobs))
        yield self._think(self.costs.report)
        self.found.machine_seconds += self.engine.now

    def _whole(self, job: Job) -> Steps:
        yield self.engine.all(self._prepare(job))
        yield self.engine.all(self._attempt(job))

    def _think(self, seconds: float) -> Work:
        """Work of one process: it cannot use more than one core."""
        return Work(self.cpu, seconds, 1.0)

    def _prepare(self, job: Job) -> Steps:
        if not self.scenario.prepared:
            costs = self.costs
            yield Take(self.downloads)
            yield self._think(costs.download)
            yield Work(self.uplink, job.download_bytes, self.scenario.connection)
            self.downloads.release()
            yield Take(self.preparations)
            yield self._think(costs.split)
            # Chunks go to all workers: a split that is alone has all cores. Reading, working and writing overlap.
            yield self.engine.all(
                self._one(Work(self.cpu, job.download_bytes / job.split_rate)),
                self._one(Work(self.disk, job.download_bytes * (1 + costs.prepared_share))),
            )
            self.preparations.release()
            yield self._think(costs.checksum)
        self.found.prepare_seconds = max(self.found.prepare_seconds, self.engine.now)

    def _one(self, work: Work) -> Steps:
        yield work

    def _attempt(self, job: Job) -> Steps:
        copy: list[Process] = []
        yield self.engine.all(*(self._seed(job, copy) for _ in range(self.scenario.seeds)))

    def _seed(self, job: Job, copy: list[Process]) -> Steps:
        """One run. The first to get a slot fetches the competition's data for all on its machine, who wait for it."""
        yield Take(self.agents)
        if not copy:
            public = job.download_bytes * self.costs.prepared_share * self.costs.public_share
            copy.append(self.engine.start(self._one(Work(self.store, public))))
        yield Join((copy[0],))
        yield self._think(self.costs.launch)
        yield Sleep(self.scenario.agent_seconds)
        yield self._think(self.costs.collect)
        self.agents.release()
        self.found.agent_seconds += self.scenario.agent_seconds
        yield self._think(self.costs.grade)
        self.found.runs += 1
        self.found.ends.append((job.name, self.engine.now))
