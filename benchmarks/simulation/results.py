"""Scenarios and their predictions, as Markdown and as a data frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from benchmarks.simulation.costs import Costs, Job
from benchmarks.simulation.pipeline import Prediction, Scenario, predict

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = (
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
class Result:
    """A scenario and its prediction."""

    scenario: Scenario
    prediction: Prediction


def results(jobs: Sequence[Job], costs: Costs, scenarios: Iterable[Scenario]) -> list[Result]:
    """Simulate all scenarios."""
    return [Result(scenario, predict(jobs, costs, scenario)) for scenario in scenarios]


def markdown(found: Sequence[Result]) -> str:
    """A Markdown table with one line per scenario."""
    lines = [f"| {' | '.join(_COLUMNS)} |", "|" + "---:|" * len(_COLUMNS)]
    for each in found:
        scenario, prediction = each.scenario, each.prediction
        models = prediction.runs * scenario.run_dollars
        cells = (
            f"{scenario.machines}",
            f"{scenario.uplink / 125e6:g} Gbit/s",
            f"{scenario.machines * scenario.agents}",
            f"{prediction.prepare_seconds / 3600:.1f} h",
            duration(prediction.seconds),
            f"{prediction.busy(scenario):.0%}",
            f"{prediction.dollars(scenario) - models:,.0f}",
            f"{models:,.0f}",
            f"{prediction.dollars(scenario):,.0f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def duration(seconds: float) -> str:
    """A duration in hours, or in days from 72 hours.

    >>> duration(7200), duration(360000)
    ('2.0 h', '4.2 days')
    """
    return f"{seconds / 3600:.1f} h" if seconds < 72 * 3600 else f"{seconds / 86400:.1f} days"


def frame(found: Sequence[Result]) -> pd.DataFrame:
    """One row per scenario: its parameters and its prediction; seconds, bytes per second, US dollars."""
    import pandas as pd

    return pd.DataFrame(
        {
            **asdict(each.scenario),
            "seconds": each.prediction.seconds,
            "prepare_seconds": each.prediction.prepare_seconds,
            "machine_seconds": each.prediction.machine_seconds,
            "runs": each.prediction.runs,
            "busy": each.prediction.busy(each.scenario),
            "dollars": each.prediction.dollars(each.scenario),
        }
        for each in found
    )
