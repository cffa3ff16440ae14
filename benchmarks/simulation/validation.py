"""Validation: the simulation is calibrated with one small run and predicts others, which are then measured."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.simulation.calibration import SERIAL, SPLIT, Configuration, Measured, costs_of, measure
from benchmarks.simulation.costs import Costs, jobs
from benchmarks.simulation.pipeline import Scenario, predict

TARGET = 0.2
"""Largest acceptable relative error of a prediction."""
CONFIGURATIONS = (Configuration(seeds=4, agents=2), Configuration(seeds=2, agents=3))


@dataclass(frozen=True)
class Comparison:
    """A predicted and a measured wall time, in seconds."""

    configuration: Configuration
    predicted: float
    measured: float

    @property
    def error(self) -> float:
        """Relative error of the prediction; positive if it was too long."""
        return self.predicted / self.measured - 1

    @property
    def line(self) -> str:
        """The comparison in one line."""
        words, seconds = self.configuration.words, f"predicted {self.predicted:.1f} s, measured {self.measured:.1f} s"
        return f"{words}: {seconds}, error {self.error:+.1%}"


def scenario_of(configuration: Configuration, agent_seconds: float) -> Scenario:
    """The scenario of a run of the demo on this machine."""
    return Scenario(
        cores=os.cpu_count() or 1,
        agents=configuration.agents,
        downloads=configuration.downloads,
        preparations=configuration.preparations,
        seeds=configuration.seeds,
        agent_seconds=agent_seconds,
    )


def measure_all(agent_seconds: float, rounds: int, report: Callable[[str], None]) -> dict[Configuration, Measured]:
    """The quickest run of the calibration and of each configuration, by `rounds` rounds of all of them in turns.

    They are run in turns because other load on the machine varies; the quickest runs were disturbed least.
    """
    quickest: dict[Configuration, Measured] = {}
    for number in range(1, rounds + 1):
        for configuration in (SERIAL, *CONFIGURATIONS):
            with tempfile.TemporaryDirectory(prefix="mlebench-simulate-") as folder:
                found = measure(Path(folder) / "run", agent_seconds, configuration)
            report(f"round {number}: {configuration.words}: {found.seconds:.1f} s, slowdown {found.slowdown:.2f}")
            if configuration not in quickest or found.seconds < quickest[configuration].seconds:
                quickest[configuration] = found
    return quickest


def comparisons(quickest: dict[Configuration, Measured]) -> tuple[Costs, list[Comparison]]:
    """The costs from the calibration, and for each configuration the predicted and the measured time.

    Costs are those of an idle machine. The slowdown of each run by other load is measured, not predicted.
    """
    calibration = quickest[SERIAL]
    costs = costs_of(calibration).slower(1 / calibration.slowdown)
    demo = jobs(SPLIT, costs)
    found = []
    for configuration in CONFIGURATIONS:
        measured, scenario = quickest[configuration], scenario_of(configuration, calibration.agent_seconds)
        predicted = predict(demo, costs.slower(measured.slowdown), scenario)
        found.append(Comparison(configuration, predicted.seconds, measured.seconds))
    return costs, found
