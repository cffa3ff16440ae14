"""Searching code and logs of runs for broken rules with static detectors, and with a language model if configured."""

from __future__ import annotations

import contextlib
import csv
import itertools
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from common.settings import get_settings
from competitions import registry
from competitions.errors import UnknownCompetition
from grading.integrity.detectors import RunTexts, detect
from grading.integrity.examiner import Examiner
from grading.integrity.findings import Finding
from grading.integrity.questions import OVERLAP, PIECE, Asked, Reading, read_run
from storage.keys import content_key
from storage.runs.folders import StoredRun, runs_of
from storage.runs.records import ExaminationRecord
from storage.runs.texts import RunFiles, code_of, logs_of
from storage.store import Store
from storage.tables import write_table
from tasks.language_model import LanguageModel, language_model
from tasks.wiring.services import gateway_policy

MAX_IDS = 200_000
"""Number of ids that are read from a submission."""
MAX_LINE_CHARACTERS = 1 << 20
"""Longest line of a submission, in characters; the rest of a longer one is read as further lines."""
_CODE_IN_PROMPTS = (".py", ".ipynb", ".sh", ".r", ".R")


@dataclass(frozen=True)
class Examined:
    """The result for a group: rows of tables/violations, and statistics of the model's answers."""

    rows: list[dict[str, Any]]
    runs: int
    model: str | None
    pieces: int = 0
    unreadable: int = 0
    invented: int = 0
    failed: int = 0
    cost_usd: float = 0.0

    @property
    def flagged(self) -> int:
        """Runs with at least one violation."""
        return len({row["run_id"] for row in self.rows if row["severity"] == "violation"})


def find_violations(
    store: Store, run_group: str, on_next: Callable[[str], None] = lambda _: None, asked: Asked | None = None
) -> Examined:
    """Examine every run of a group; writes tables/violations.

    The findings of the static detectors are written before a model is asked. The model's answers about a run are stored
    below integrity/. It is asked again only if the texts, the model or the questions have changed, or if it did not
    answer about a part. A part without an answer is a row of the rule `not-examined`. `on_next` is called with the name
    of each run before it is examined. `asked` is what the model is asked, by default the questions of this project.
    Raises `ModelError` if no provider serves the configured model.
    """
    settings = get_settings()
    runs, model_name = runs_of(store, run_group), settings.integrity_model
    by_run: list[list[Finding]] = []
    with Examiner() as examiner:
        for run in runs:
            if model_name is None:
                on_next(run.name)
            by_run.append(detect(_texts(store, run, code_of(store, run), logs_of(store, run)), examiner.call))
    examined = _write(store, run_group, runs, by_run, "static detectors")
    if model_name is None:
        return examined
    readings: list[Reading] = []
    with language_model(model_name, gateway_policy(settings)) as model:
        for run, findings in zip(runs, by_run, strict=True):
            on_next(run.name)
            texts = code_of(store, run).texts, logs_of(store, run).texts
            readings.append(_read(store, run, model, texts, asked or Asked()))
            findings += readings[-1].findings
        cost = sum(call["cost_usd"] or 0.0 for call in model.calls())
    examined = _write(store, run_group, runs, by_run, f"static detectors and {model_name}")
    sums = {n: sum(getattr(reading, n) for reading in readings) for n in ("pieces", "unreadable", "invented", "failed")}
    return replace(examined, model=model_name, cost_usd=cost, **sums)


def _write(store: Store, run_group: str, runs: list[StoredRun], by_run: list[list[Finding]], by: str) -> Examined:
    """Write the findings of all runs, and the record of their examination."""
    rows = [
        {**run.record.who, **asdict(finding)}
        for run, findings in zip(runs, by_run, strict=True)
        for finding in findings
    ]
    write_table(store, "violations", run_group, rows)
    examined = Examined(rows, len(runs), None)
    examination = ExaminationRecord(
        run_group=run_group, stage="violations", runs=len(runs), flagged=examined.flagged, by=by, at=datetime.now(UTC)
    )
    write_table(store, "examinations", run_group, [examination.to_row()], part=examination.stage)
    return examined


def _texts(store: Store, run: StoredRun, code: RunFiles, logs: RunFiles) -> RunTexts:
    leaks: dict[str, str] = {}
    parts = {"code": code, "logs": logs}
    with contextlib.suppress(UnknownCompetition):
        issues = registry.get(run.record.competition_id).facts.known_issues
        present = (issue for issue in issues if run.record.edition == "v1" or issue.v2 == "kept")
        leaks = {term: issue.id for issue in present for term in issue.leaks}
    skipped = {f"{reason} in {part}": names for part, files in parts.items() for reason, names in files.skipped.items()}
    return RunTexts(code.texts, logs.texts, run.record.submission_exists, _ids(store, run), leaks, skipped)


def _ids(store: Store, run: StoredRun) -> frozenset[str]:
    """The first column of the submission, which contains the ids of its rows."""
    url = f"{run.source}/submission.csv"
    if not store.exists(url):
        return frozenset()
    with store.top.fs.open(store.top.path(store.relative(url)), "r", encoding="utf-8", errors="replace") as file:
        ids: set[str] = set()
        lines = iter(partial(file.readline, MAX_LINE_CHARACTERS), "")  # a line may be as long as the file
        with contextlib.suppress(csv.Error):  # not a CSV from here on
            for row in itertools.islice(csv.reader(lines), 1, MAX_IDS + 1):
                ids.update(row[:1])
    return frozenset(ids)


def _read(
    store: Store,
    run: StoredRun,
    model: LanguageModel,
    texts_of_run: tuple[dict[str, str], dict[str, str]],
    asked: Asked,
) -> Reading:
    code, logs = texts_of_run
    texts = {f"logs/{name}": text for name, text in logs.items()}
    texts |= {f"code/{name}": text for name, text in code.items() if name.endswith(_CODE_IN_PROMPTS)}
    key = content_key(model.name, dict(asked.questions), *([asked.extra] if asked.extra else []), PIECE, OVERLAP, texts)
    url = store.url("integrity", *run.name.split("/"), "reading.json")
    stored = store.read_json(url)
    if stored and stored.get("key") == key and not stored["reading"].get("failed"):
        findings = tuple(Finding(**finding) for finding in stored["reading"]["findings"])
        return Reading(**{**stored["reading"], "findings": findings})
    reading = read_run(texts, model.ask, model.name, model.ask_all, asked)
    store.write_json(url, {"key": key, "model": model.name, "reading": asdict(reading)})
    return reading
