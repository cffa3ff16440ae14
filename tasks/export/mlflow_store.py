"""Results as a file store of MLflow, which `mlflow ui` shows: one run for each competition and seed.

A run group, agent and edition is an experiment. Parameters are the conditions of a run, metrics its score and outcomes,
with the graded snapshots over time. The layout is that of MLflow 3.17, `store/tracking/file_store.py`; it has been the
same since version 1. Artifacts are left out, and so are names of users.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from common import plain_json
from common.errors import UserError
from storage.runs.records import GradeRecord, SnapshotRecord
from tasks.export.gathered import CONDITIONS, Result, Series

OUTCOMES = ("any_medal", "gold_medal", "silver_medal", "bronze_medal", "above_median", "valid_submission")
_DIRECTORIES = ("artifacts", "metrics", "params", "tags")
_SPENT = {
    "duration_seconds",
    "validation_calls",
    "scorer_calls",
    "public_score_calls",
    "gateway_requests",
    "gateway_tokens",
    "gateway_cost_usd",
}
_MAX_PARAMETER_CHARACTERS = 6000
"""MLflow's limit."""
_FINISHED, _FAILED = 3, 4
_LOCAL = 4
"""MLflow's number for a run that was not made from a project, a notebook or a job."""


def write_runs(series: Series, folder: Path) -> Path:
    """Write the experiment of a series into the store `folder`; returns the folder of the experiment.

    The ids of experiments and runs come from their names, so that a second export replaces nothing but is refused.

    Raises:
        UserError: the store has the experiment already.
    """
    name = f"{series.run_group}/{series.agent}/{series.edition}{' (feedback)' * series.has_feedback}"
    experiment_id = str(int(_hash(name)[:15], 16)).rjust(18, "1")
    experiment = folder / experiment_id
    if experiment.exists():
        raise UserError(f"{experiment} exists already; remove it, or export into another directory with --output-dir")
    began, ended = (
        [at for r in series.results if (at := _milliseconds(getattr(r.run, name, None)))]
        for name in ("started_at", "finished_at")
    )
    experiment.mkdir(parents=True)
    facts = {"artifact_location": f"mlflow-artifacts:/{experiment_id}", "experiment_id": experiment_id, "name": name}
    times = {"creation_time": min(began, default=0), "last_update_time": max(ended, default=0)}
    _yaml(experiment / "meta.yaml", {**facts, **times, "lifecycle_stage": "active"})
    for result in series.results:
        _write_run(result, series, experiment)
    return experiment


def _write_run(result: Result, series: Series, experiment: Path) -> None:
    name = f"{result.competition_id}-{result.seed}"
    run_id = _hash(f"{series.run_group}/{series.agent}/{series.edition}/{name}")[:32]
    folder = experiment / run_id
    for directory in _DIRECTORIES:
        (folder / directory).mkdir(parents=True)
    run, grade = result.run, result.grade
    began = _milliseconds(run.started_at if run else None) or _milliseconds(grade.created_at if grade else None) or 0
    ended = max(_milliseconds(run.finished_at if run else None) or began, began)
    graded = grade is not None and grade.outcome != "failed"
    facts = {
        "artifact_uri": f"mlflow-artifacts:/{experiment.name}/{run_id}/artifacts",
        "experiment_id": experiment.name,
        "run_id": run_id,
        "run_name": name,
        "start_time": began,
        "end_time": ended,
        "status": _FINISHED if graded else _FAILED,
        "lifecycle_stage": "active",
        "user_id": "",
        **dict.fromkeys(("entry_point_name", "source_name", "source_version"), ""),
        "source_type": _LOCAL,
        "tags": [],
    }
    _yaml(folder / "meta.yaml", facts)
    _write(folder / "params", _parameters(result, series))
    _write(folder / "tags", {"mlflow.runName": name, **_tags(result, series)})
    lines: dict[str, list[str]] = {}
    for metric, value, seconds in _metrics(result, (ended - began) / 1000):
        moment = began + round(1000 * seconds)
        lines.setdefault(metric, []).append(f"{moment} {value!r} {round(seconds)}\n")
    for metric, values in lines.items():
        (folder / "metrics" / metric).write_text("".join(values), "utf-8")


def _parameters(result: Result, series: Series) -> Iterator[tuple[str, str]]:
    """The conditions of a run, and what identifies it. A parameter has one line."""
    named = {"competition": result.competition_id, "seed": result.seed, "agent": series.agent}
    facts = {"edition": series.edition, "run_group": series.run_group}
    if result.facts is not None:
        facts |= {"complexity": result.facts.complexity, "category": result.facts.category}
    conditions = {name: getattr(result.run, name, None) for name in CONDITIONS}
    for name, value in {**named, **facts, **conditions}.items():
        if value is not None:
            yield name, " ".join(str(value).split())[:_MAX_PARAMETER_CHARACTERS]


def _tags(result: Result, series: Series) -> dict[str, str]:
    """How the run ended, and how it was graded."""
    found: dict[str, Any] = {"run_group": series.run_group, "competition": result.competition_id}
    if result.run is not None:
        found |= {"run_id": result.run.run_id, "status": result.run.status, "message": result.run.message}
    found["outcome"] = result.grade.outcome if result.grade else "not graded"
    return {name: str(value) for name, value in found.items() if value}


def _metrics(result: Result, seconds: float) -> Iterator[tuple[str, float, float]]:
    """Name, value and time of each metric: graded snapshots, then the grade at the end of the run.

    Numbers that are not finite are left out, because MLflow's page cannot draw them.
    """
    for snapshot in sorted(result.snapshots, key=lambda each: each.at_seconds):
        yield from _graded(snapshot, result, snapshot.at_seconds)
    grade = result.grade
    if grade is not None and grade.outcome != "failed":
        yield from _graded(grade, result, seconds)
        if _finite(grade.public_score):
            yield "public_score", float(grade.public_score or 0.0), seconds
        for name in ("gold", "silver", "bronze", "median"):
            if _finite(threshold := getattr(grade, f"{name}_threshold")):
                yield f"{name}_threshold", float(threshold), seconds
    for name in sorted(_SPENT):
        value = getattr(result.run, name, None)
        if value is not None and _finite(value) and value >= 0:
            yield name, float(value), seconds


def _graded(record: GradeRecord | SnapshotRecord, result: Result, seconds: float) -> Iterator[tuple[str, float, float]]:
    if _finite(record.score):
        yield "score", float(record.score or 0.0), seconds
    if not math.isnan(percentile := result.percentile(record.score)):
        yield "human_percentile", percentile, seconds
    for name in OUTCOMES:
        yield name, float(getattr(record, name)), seconds


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _write(folder: Path, values: dict[str, str] | Iterable[tuple[str, str]]) -> None:
    """A file for each parameter or tag. Its name is its path, so that of a foreign one would have to be checked."""
    for name, value in dict(values).items():
        (folder / name).write_text(value.encode("utf-8", "replace").decode(), "utf-8", newline="")


def _yaml(path: Path, facts: dict[str, Any]) -> None:
    """JSON is YAML, except for its pairs of escapes for characters above U+FFFF."""
    text = plain_json.dumps(facts, indent=1, ensure_ascii=False).encode("utf-8", "replace").decode()
    path.write_text(re.sub(r"[^\n -~]", lambda found: f"\\U{ord(found[0]):08X}", text) + "\n", "utf-8")


def _milliseconds(moment: datetime | None) -> int | None:
    if moment is None:
        return None
    return round(1000 * (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
