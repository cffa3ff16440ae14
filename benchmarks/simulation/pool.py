"""A work pool as processes of the engine: one machine prepares and hands out, any machine with a free slot attempts.

Differences from `benchmarks.simulation.pipeline`: competitions are not assigned to machines, the attempts at one begin
as soon as it is prepared, and each attempt is a flow run in a process of its own, which also costs the Prefect server.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.simulation.costs import Costs, Job
from benchmarks.simulation.engine import Engine, Join, Pipe, Process, Sleep, Slots, Steps, Take, Work
from benchmarks.simulation.pipeline import Machine, Prediction, Scenario

SERVER_CORES = 1.0
"""The API of a Prefect server is one process, which runs Python on one core."""


def predict_pool(jobs: Sequence[Job], costs: Costs, scenario: Scenario) -> Prediction:
    """Simulate the full benchmark of these competitions on the hosts of a work pool."""
    engine, found = Engine(), Prediction()
    engine.start(_Pool(engine, costs, scenario, found).run(jobs))
    found.seconds = engine.run()
    found.machine_seconds = found.seconds * scenario.machines
    return found


class _Pool:
    """The hosts of a pool, the machine that prepares and hands out, and the server."""

    def __init__(self, engine: Engine, costs: Costs, scenario: Scenario, found: Prediction) -> None:
        self.engine, self.costs, self.scenario, self.found = engine, costs, scenario, found
        uplink = Pipe(engine, scenario.uplink)
        cpu = Pipe(engine, scenario.cores) if scenario.one_machine else None
        self.first = Machine(engine, uplink, costs, scenario, found, cpu)
        rest = (Machine(engine, uplink, costs, scenario, found, cpu) for _ in range(1, scenario.machines))
        self.hosts = [self.first, *rest]
        self.slots = Slots(scenario.machines * scenario.agents)
        self.taken = dict.fromkeys(range(scenario.machines), 0)
        self.copies: dict[tuple[int, str], Process] = {}
        self.server = cpu or Pipe(engine, SERVER_CORES)

    def run(self, jobs: Sequence[Job]) -> Steps:
        yield self.first.compute(self.costs.start)
        yield self.engine.all(*(self._competition(job) for job in jobs))
        yield self.first.compute(self.costs.report)

    def _competition(self, job: Job) -> Steps:
        yield self.engine.all(self.first.prepare(job))
        yield self.engine.all(*(self._attempt(job) for _ in range(self.scenario.seeds)))

    def _attempt(self, job: Job) -> Steps:
        yield self.first.compute(self.costs.hand_out)
        yield Take(self.slots)
        number = self._host_for(job)
        host = self.hosts[number]
        self.taken[number] += 1
        yield Sleep(self.costs.poll / 2)
        yield self.engine.all(
            _one(host.compute(self.costs.flow_run)), _one(Work(self.server, self.costs.server, limit=1.0))
        )
        if (number, job.name) not in self.copies:
            public = job.download_bytes * self.costs.prepared_share * self.costs.public_share
            self.copies[number, job.name] = self.engine.start(_one(Work(host.store, public)))
        yield Join((self.copies[number, job.name],))
        yield host.compute(self.costs.launch)
        yield Sleep(self.scenario.agent_seconds)
        yield host.compute(self.costs.collect + self.costs.grade)
        self.taken[number] -= 1
        self.slots.release()
        self.found.agent_seconds += self.scenario.agent_seconds
        self.found.runs += 1
        self.found.ends.append((job.name, self.engine.now))

    def _host_for(self, job: Job) -> int:
        """A host with a free slot: one that has the data, otherwise the one with the most free slots."""

        def preference(number: int) -> tuple[bool, int]:
            return (number, job.name) not in self.copies, self.taken[number]

        free = [number for number, taken in self.taken.items() if taken < self.scenario.agents]
        return min(free, key=preference)


def _one(work: Work) -> Steps:
    yield work


def ideal_seconds(scenario: Scenario, attempts: int) -> float:
    """The time of the agents alone if all slots are always taken, in seconds."""
    return math.ceil(attempts / (scenario.machines * scenario.agents)) * scenario.agent_seconds
