"""What the public leaderboard's maintainers ask about a submission: what the records say, and what only people know."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from common.units import counted, size
from storage.runs.records import RunRecord
from storage.store import Store
from storage.tables import read_table
from tasks.export.gathered import Series

NAMES = {
    "models": "Language models",
    "hours": "Running time (hours)",
    "hardware": "Hardware",
    "network": "Network of the agent",
    "feedback": "Feedback from the test set",
    "external-data": "External data and pretrained models",
    "leakage": "Use of known leaks",
    "source-code": "Source code",
}
"""The facts, by the names that `mlebench export --fact` takes."""


@dataclass(frozen=True)
class Fact:
    """A fact about a submission. What the records do not say is asked for, and never guessed."""

    name: str
    recorded: str | None
    stated: str | None
    unknown: str
    """Why the records do not say it, and how to say it."""

    @property
    def label(self) -> str:
        """What it is about, in words."""
        return NAMES[self.name]

    @property
    def known(self) -> bool:
        """Whether the records say it, or the submitter did."""
        return bool(self.recorded or self.stated)

    @property
    def denied(self) -> bool:
        """Whether the answer is "no". Findings in the records cannot be denied."""
        return re.match(r"(no|none|not)\b", self.recorded or self.stated or "", re.IGNORECASE) is not None

    @property
    def question(self) -> str:
        """The line that asks for it."""
        return f'ASK: {self.label.lower()}: {self.unknown}. Give it with --fact "{self.name}=..."'


def facts_of(store: Store, series: Series, stated: Mapping[str, str]) -> dict[str, Fact]:
    """The facts of a series by name, in the order in which they are shown."""
    runs = [result.run for result in series.results if result.run is not None]
    lacking = len(series.results) - len(runs)
    none = f"{counted(lacking, 'result')} without a record of the run, as imported ones are" if lacking else ""
    found = {
        "models": _models(store, series, runs),
        "hours": _shared(f"{run.time_limit_seconds / 3600:g}" if run.time_limit_seconds else None for run in runs),
        "hardware": _shared(_hardware(run) for run in runs),
        "network": _shared(_network(run) for run in runs),
        "feedback": _feedback(runs),
        "external-data": (None, "no record says what the agent's image and its models' training data contained"),
        "leakage": _leakage(store, series),
        "source-code": (None, "its address, or no"),
    }
    facts = {}
    for name, (recorded, unknown) in found.items():
        by_run = name not in ("external-data", "source-code", "leakage")
        known = None if by_run and none else recorded
        facts[name] = Fact(name, known, stated.get(name), none if by_run and none else unknown)
    return facts


def _shared(values: Iterable[str | None]) -> tuple[str | None, str]:
    """All values that were recorded; none if any run has none."""
    every = list(values)
    lacking = every.count(None)
    known = sorted({value for value in every if value is not None})
    return (", ".join(known) if known and not lacking else None), f"not recorded for {counted(lacking, 'run')}"


def _models(store: Store, series: Series, runs: list[RunRecord]) -> tuple[str | None, str]:
    usage = read_table(store, "usage", [series.run_group])
    own = {run.run_id for run in runs}
    called = sorted(set(usage[usage["run_id"].isin(own)]["model"].dropna())) if len(usage) else []
    return ", ".join(called) or None, "no run asked a language model through the gateway"


def _hardware(run: RunRecord) -> str | None:
    if run.hardware is None:
        return None
    limits = [counted(run.cpus, "processor")] if run.cpus else []
    limits += [f"{size(run.memory_bytes)} of memory"] if run.memory_bytes else []
    limits += [counted(run.gpus, "GPU")] if run.gpus is not None else []
    return f"{', '.join(limits) or 'no limits'}, of {run.hardware}"


def _network(run: RunRecord) -> str | None:
    if run.backend is None:
        return None
    policies = {"none": "no network", "gateway": "language models only", "open": "not restricted"}
    return policies.get(run.network or "open", run.network) or ""


def _feedback(runs: list[RunRecord]) -> tuple[str | None, str]:
    """None, if containers kept the agent from the answers: what they reach says only whether a submission is valid."""
    closed = [run for run in runs if run.backend == "docker" and run.network in ("none", "gateway")]
    if not runs or len(closed) < len(runs):
        open_runs = counted(len(runs) - len(closed), "run")
        return None, f"nothing kept the agent from the answers in {open_runs} outside of closed containers"
    checked = sum(run.validation_calls or 0 for run in runs)
    return (
        "none: containers without the answers and without the web; the validation service says only whether a "
        f"submission is valid ({counted(checked, 'request')})"
    ), ""


def _leakage(store: Store, series: Series) -> tuple[str | None, str]:
    examined = read_table(store, "examinations", [series.run_group])
    if examined.empty or "violations" not in set(examined["stage"]):
        return None, f"mlebench examine {series.run_group} --only violations looks for it"
    found = read_table(store, "violations", [series.run_group])
    leaks = found[(found["rule"] == "leak") & (found["agent"] == series.agent)] if len(found) else found
    if leaks.empty:
        return "none found by mlebench examine", ""
    names = ", ".join(sorted(set(leaks["competition_id"])))
    return f"found in {counted(leaks['run_id'].nunique(), 'run')}: {names}", ""


def parse_facts(texts: Iterable[str]) -> dict[str, str]:
    """The facts of texts such as `hours=24`. Raises ValueError for one without a value, or with an unknown name."""
    facts = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in NAMES or not value.strip():
            raise ValueError(f"--fact {text!r} is not of the form NAME=VALUE with a NAME of {', '.join(NAMES)}")
        facts[name] = value.strip()
    return facts
