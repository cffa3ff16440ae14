"""What the public leaderboard's maintainers ask about a submission: what the records say, and what only people know."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from common.units import counted, size
from grading.statistics.leakage import leaks_found
from sandbox import backends
from sandbox.errors import BackendError
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
_YES_OR_NO = ("feedback", "leakage", "source-code")
"""Facts of which the submission shows a mark: what is stated must be clearly yes or no."""


@dataclass(frozen=True)
class Record:
    """What the records say about a fact."""

    text: str | None
    missing: str = ""
    """Why there is no text, and how to say it."""
    answer: bool | None = None
    """Whether the text means yes or no, for a fact that is one of these."""
    from_runs: bool = True
    """Whether it is not known if a result has no record of its run."""


@dataclass(frozen=True)
class Fact:
    """A fact about a submission. What the records do not say is asked for, and never guessed."""

    name: str
    record: Record
    stated: str | None

    @property
    def label(self) -> str:
        """What it is about, in words."""
        return NAMES[self.name]

    @property
    def recorded(self) -> str | None:
        """What the records say."""
        return self.record.text

    @property
    def answer(self) -> bool | None:
        """Yes if the records or the submitter say so, no if all that is said is no, otherwise None: not known."""
        answers = [self.record.answer] if self.recorded else []
        answers += [_yes_or_no(self.stated)] if self.stated else []
        return True if True in answers else None if None in answers or not answers else False

    @property
    def known(self) -> bool:
        """Whether the records say it, or the submitter did."""
        return self.answer is not None if self.name in _YES_OR_NO else bool(self.recorded or self.stated)

    @property
    def question(self) -> str:
        """The line that asks for it."""
        why, forms = self.record.missing, [f"{self.name}=..."]
        if self.name in _YES_OR_NO:
            why = f"{self.stated!r} is neither yes nor no" if self.stated else why
            forms = [f"{self.name}=no", f"{self.name}={'https://' if self.name == 'source-code' else 'yes, '}..."]
        given = " or ".join(f'--fact "{form}"' for form in forms)
        return f"ASK: {self.label.lower()}: {why}. Give it with {given}"


def _yes_or_no(text: str) -> bool | None:
    """Exactly "no" or "none" is no. An answer that begins with "yes" or is an address is yes; all else is unclear."""
    if text.casefold() in ("no", "none"):
        return False
    words = text.casefold().split() or [""]
    return True if words[0].rstrip(",.:;") == "yes" or words[0].startswith(("https://", "http://")) else None


def facts_of(store: Store, series: Series, stated: Mapping[str, str]) -> dict[str, Fact]:
    """The facts of a series by name, in the order in which they are shown."""
    runs = [result.run for result in series.results if result.run is not None]
    contents = "no record says what the agent's image and its models' training data contained"
    records = {
        "models": _models(store, series, runs),
        "hours": _shared(f"{run.time_limit_seconds / 3600:g}" if run.time_limit_seconds else None for run in runs),
        "hardware": _shared(_hardware(run) for run in runs),
        "network": _shared(_network(run) for run in runs),
        "feedback": _feedback(runs),
        "external-data": Record(None, contents, from_runs=False),
        "leakage": _leakage(store, series),
        "source-code": Record(None, "its address, or no", from_runs=False),
    }
    if lacking := len(series.results) - len(runs):
        why = f"{counted(lacking, 'result')} without a record of the run, as imported ones are"
        records = {name: Record(None, why) if record.from_runs else record for name, record in records.items()}
    return {name: Fact(name, record, stated.get(name)) for name, record in records.items()}


def _shared(values: Iterable[str | None]) -> Record:
    """All values that were recorded; none if any run has none."""
    every = list(values)
    lacking = every.count(None)
    known = sorted({value for value in every if value is not None})
    text = ", ".join(known) if known and not lacking else None
    return Record(text, f"not recorded for {counted(lacking, 'run')}")


def _models(store: Store, series: Series, runs: list[RunRecord]) -> Record:
    usage = read_table(store, "usage", [series.run_group])
    own = {run.run_id for run in runs}
    called = sorted(set(usage[usage["run_id"].isin(own)]["model"].dropna())) if len(usage) else []
    return Record(", ".join(called) or None, "no run asked a language model through the gateway")


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


def _feedback(runs: list[RunRecord]) -> Record:
    """None, if isolation kept the agent from the answers: what they reach says only whether a submission is valid."""
    closed = [run for run in runs if _isolates(run.backend) and run.network in ("none", "gateway")]
    if not runs or len(closed) < len(runs):
        open_runs = counted(len(runs) - len(closed), "run")
        return Record(None, f"nothing kept the agent from the answers or the web in {open_runs}")
    checked = sum(run.validation_calls or 0 for run in runs)
    text = "none: isolated from the answers and from the web; the validation service says only whether a "
    text += f"submission is valid ({counted(checked, 'request')})"
    if any(run.scorer for run in runs):
        scored = sum(run.scorer_calls or 0 for run in runs)
        text += f"; a scorer computed the metric on data of the agent's own ({counted(scored, 'request')})"
    return Record(text, answer=False)


def _isolates(backend: str | None) -> bool:
    """Whether a backend kept agents from what the operator can read; no if it is not known on this machine."""
    with contextlib.suppress(BackendError):
        return backend is not None and backends.load(backend).capabilities.isolates
    return False


def _leakage(store: Store, series: Series) -> Record:
    examinations, violations = (read_table(store, name, [series.run_group]) for name in ("examinations", "violations"))
    leaks = leaks_found(examinations, violations, series.run_group, series.agent)
    if leaks is None:
        return Record(None, f"mlebench examine {series.run_group} --only violations looks for it", from_runs=False)
    if leaks.empty:
        return Record("none found by mlebench examine", answer=False, from_runs=False)
    names = ", ".join(sorted(set(leaks["competition_id"])))
    return Record(f"found in {counted(leaks['run_id'].nunique(), 'run')}: {names}", answer=True, from_runs=False)


def parse_facts(texts: Iterable[str]) -> dict[str, str]:
    """The facts of texts such as `hours=24`.

    Raises ValueError for one without a value or with an unknown name, and for a name that occurs twice.
    """
    facts = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in NAMES or not value.strip():
            raise ValueError(f"--fact {text!r} is not of the form NAME=VALUE with a NAME of {', '.join(NAMES)}")
        if name in facts:
            raise ValueError(f"--fact {name}=... is given twice; give one")
        facts[name] = value.strip()
    return facts
