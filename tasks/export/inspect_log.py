"""Results as a log of Inspect (inspect_ai), which its reader and `inspect view` open.

A competition is a sample and a seed an epoch; epochs begin at 1. The log is a ZIP archive, written run by run: it needs
no more memory than the largest run. The format is that of inspect_ai 0.3.285, `log/_recorders/eval.py`.
"""

from __future__ import annotations

import hashlib
import math
import re
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from common import plain_json
from common.errors import UserError
from competitions import registry
from sandbox.trajectory.messages import plain
from storage.runs.records import SnapshotRecord
from tasks.export.gathered import Result, Series, file_name
from tasks.export.inspect_events import Transcript, Usage

VERSION = 2
TASK = "mle-bench"
NO_MODEL = "none/none"
"""Inspect's name for no model."""
RATES = ("any_medal", "gold_medal", "silver_medal", "bronze_medal", "above_median", "valid_submission")
_MAX_SUMMARY_CHARACTERS = 1000
"""Inspect's limit for texts in summaries of samples."""


def write_log(series: Series, folder: Path) -> Path:
    """Write the log of a series into a folder; returns its path. Its name begins with its time, as Inspect's do."""
    created = min(map(_began, series.results))
    name = file_name(*series.name, unusual="[^A-Za-z0-9.-]")  # Inspect splits names of files at underscores
    path = folder / f"{created:%Y-%m-%dT%H-%M-%S}+00-00_{TASK}_{name}.eval"
    usage, summaries, latest = Usage(), [], created
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for result in series.results:
            sample = _sample(result, series)
            for model, spent in sample["model_usage"].items():
                usage.add(model, spent)
            latest = max(latest, datetime.fromisoformat(sample["completed_at"]))
            _write(archive, f"samples/{result.competition_id}_epoch_{sample['epoch']}.json", sample)
            summaries.append(_summary(sample))
        spec = _spec(series, created, usage.main_model())
        plan = {"name": "plan", "steps": [{"solver": series.agent, "params": {}}], "config": {}}
        start = {"version": VERSION, "eval": spec, "plan": plan}
        stats = {"started_at": created.isoformat(), "completed_at": latest.isoformat(), "model_usage": usage.by_model}
        _write(archive, "_journal/start.json", start)
        _write(archive, "summaries.json", summaries)
        _write(archive, "header.json", {**start, "status": "success", "results": _results(series), "stats": stats})
    return path


def _spec(series: Series, created: datetime, model: str | None) -> dict[str, Any]:
    """The specification of the evaluation: task, agent, model and conditions."""
    conditions = series.conditions()
    commit, limit = str(conditions.get("git_commit", "")), conditions.get("time_limit_seconds")
    revision = {"type": "git", "origin": "", "commit": commit}
    identity = hashlib.sha256(f"{series.run_group}/{series.agent}/{series.edition}".encode()).hexdigest()[:22]
    return {
        "eval_id": identity,
        "run_id": identity,
        "created": created.isoformat(),
        "task": TASK,
        "task_id": identity,
        "task_version": str(conditions.get("edition_version", series.edition)),
        "task_display_name": series.benchmark,
        "task_args": {"edition": series.edition, "run_group": series.run_group},
        "solver": series.agent,
        "tags": [series.run_group, series.agent, series.edition],
        "dataset": {
            "name": f"mle-bench {series.edition}",
            "samples": len(series.competition_ids),
            "sample_ids": series.competition_ids,
            "shuffled": False,
        },
        "model": model or NO_MODEL,
        "config": {
            "epochs": len(series.seeds),
            "epochs_reducer": ["mean"],
            **({"time_limit": int(limit)} if isinstance(limit, int | float) else {}),
        },
        **({"revision": revision} if re.fullmatch("[0-9a-f]{7,40}", commit) else {}),
        "packages": {"mlebench-pipeline": str(conditions.get("package_version", "unknown"))},
        "metadata": {"run_group": series.run_group, "agent": series.agent, "edition": series.edition, **conditions},
        "headline_metric": {"score": "any_medal", "metric": "mean"},
    }


def _results(series: Series) -> dict[str, Any]:
    """The rates over all samples and by split, with standard errors over seeds and 95 % intervals."""
    scores = []
    for rate in RATES:
        rows = series.rates[series.rates["rate"] == rate].to_dict("records")
        metrics: dict[str, Any] = {}
        for row in rows:
            all_competitions = row["split"] == "all"
            for name in ("mean", "sem", "ci_low", "ci_high"):
                if not math.isnan(value := row[name]):
                    label = name if all_competitions else f"{row['split']}_{name}"
                    facts = {"seeds": int(row["seeds"]), "competitions": int(row["competitions"])}
                    group = {} if all_competitions else {"group": str(row["split"])}
                    metrics[label] = {"name": label, "value": float(value), "metadata": facts, **group}
        scored = sum(_graded(result) for result in series.results)
        counts = {"scored_samples": scored, "unscored_samples": len(series.results) - scored}
        scores.append({"name": rate, "scorer": rate, "reducer": "mean", **counts, "metrics": metrics})
    done = sum(_graded(result) for result in series.results)
    return {
        "total_samples": len(series.competition_ids) * len(series.seeds),
        "completed_samples": done,
        "scores": scores,
    }


def _sample(result: Result, series: Series) -> dict[str, Any]:
    """The sample of a run: its description, its calls of language models, its graded snapshots and its scores."""
    run, began = result.run, _began(result)
    transcript = Transcript(began)
    for call in result.calls():
        transcript.add(call)
    ended = _aware(run.finished_at) if run and run.finished_at else began
    seconds = (ended - began).total_seconds()
    described = _described(result, series)
    scores = _scores(result)
    metadata = _metadata(result)
    events = [
        *transcript.events,
        *(_snapshot(snapshot, result, began) for snapshot in result.snapshots),
        *(_score_event(name, score, ended, seconds, intermediate=False) for name, score in scores.items()),
    ]
    sample = {"input": described, "target": "", "id": result.competition_id, "metadata": metadata}
    start = {
        "event": "sample_init",
        "timestamp": began.isoformat(),
        "working_start": 0.0,
        "sample": sample,
        "state": {},
    }
    return {
        "id": result.competition_id,
        "epoch": result.seed + 1,
        "input": described,
        "target": "",
        "messages": transcript.conversation,
        "output": transcript.output or {"model": NO_MODEL, "choices": []},
        "scores": scores,
        "metadata": metadata,
        "events": [start, *sorted(events, key=lambda event: event["timestamp"])],
        "events_data": {"messages": transcript.pool, "calls": []},
        "model_usage": transcript.usage.by_model,
        "started_at": began.isoformat(),
        "completed_at": ended.isoformat(),
        "total_time": seconds,
        "working_time": seconds,
        "uuid": hashlib.sha256(f"{result.folder.name}/{series.edition}".encode()).hexdigest()[:22],
        **_ending(result),
    }


def _described(result: Result, series: Series) -> str:
    """The description that the agent got; the id of the competition if the catalog does not have it."""
    if result.facts is None:
        return result.competition_id
    obfuscated = bool(result.run and result.run.obfuscated)
    try:
        return registry.get(result.competition_id).describe(series.edition, obfuscated=obfuscated)
    except UserError:
        return result.competition_id


def _metadata(result: Result) -> dict[str, Any]:
    metadata: dict[str, Any] = {"seed": result.seed}
    if result.facts is not None:
        metadata |= {name: getattr(result.facts, name) for name in ("name", "category", "complexity")}
        metadata |= {"metric": result.facts.metric.name, "lower_is_better": result.facts.lower_is_better}
    if result.run is not None:
        metadata |= {"run_id": result.run.run_id, "status": result.run.status, "exit_code": result.run.exit_code}
        metadata |= {"message": result.run.message, "validations": result.run.validation_calls}
    return {name: plain(value) for name, value in metadata.items() if value is not None}


def _graded(result: Result) -> bool:
    return result.grade is not None and result.grade.outcome != "failed"


def _scores(result: Result) -> dict[str, Any]:
    """The scores of a graded run: the outcomes that rates count, the score, and the share of teams that it beats."""
    grade = result.grade
    if grade is None or not _graded(result):
        return {}
    medal = next((name for name in ("gold", "silver", "bronze") if getattr(grade, f"{name}_medal")), "no")
    thresholds = {name: getattr(grade, name) for name in type(grade).model_fields if name.endswith("_threshold")}
    told = {name: getattr(grade, name) for name in ("feedback", "public_score", "score_with_public_rows")}
    facts = {**thresholds, **told, "outcome": grade.outcome, "leaderboard": grade.leaderboard, "medal": medal}
    facts = {name: plain(value) for name, value in facts.items() if value is not None}
    text = (
        f"score {grade.score:g}, {medal} medal" if grade.score is not None else str(plain(grade.message or "no score"))
    )
    scores: dict[str, dict[str, Any]] = {}
    for rate in RATES:
        scores[rate] = {"value": float(getattr(grade, rate)), "explanation": text}
    scores["any_medal"]["metadata"] = facts
    for name, value in (("score", grade.score), ("human_percentile", result.beaten)):
        if value is not None and math.isfinite(value):
            scores[name] = {"value": value, "explanation": text}
    return scores


def _snapshot(snapshot: SnapshotRecord, result: Result, began: datetime) -> dict[str, Any]:
    """A graded snapshot of the submission, as an intermediate score."""
    percentile = result.percentile(snapshot.score)
    facts: dict[str, Any] = {"any_medal": snapshot.any_medal, "valid_submission": snapshot.valid_submission}
    facts |= {} if math.isnan(percentile) else {"human_percentile": percentile}
    has_score = snapshot.score is not None and math.isfinite(snapshot.score)
    score = {"value": snapshot.score if has_score else "invalid", "metadata": facts}
    moment = began + timedelta(seconds=snapshot.at_seconds)
    return _score_event("score", score, moment, snapshot.at_seconds, intermediate=True)


def _score_event(
    name: str, score: dict[str, Any], moment: datetime, seconds: float, *, intermediate: bool
) -> dict[str, Any]:
    when = {"timestamp": moment.isoformat(), "working_start": seconds}
    return {"event": "score", **when, "score": score, "scorer": name, "intermediate": intermediate}


def _ending(result: Result) -> dict[str, Any]:
    """The error of a run without a usable grade, and the limit at which a run ended."""
    fields: dict[str, Any] = {}
    if not _graded(result):
        message = "the run is not graded" if result.grade is None else "grading failed: an error of the benchmark"
        fields["error"] = {"message": message, "traceback": "", "traceback_ansi": ""}
    run = result.run
    if run is not None and run.status == "timeout" and run.time_limit_seconds:
        fields["limit"] = {"type": "time", "limit": run.time_limit_seconds}
    elif run is not None and run.status in ("memory", "disk", "processes"):
        fields["limit"] = {"type": "custom", "limit": float(run.memory_bytes or 0), "reason": run.status}
    return fields


def _summary(sample: dict[str, Any]) -> dict[str, Any]:
    """The summary of a sample, which viewers read first."""
    names = ("id", "epoch", "target", "metadata", "scores", "model_usage", "started_at", "completed_at", "total_time")
    summary = {name: sample[name] for name in (*names, "working_time", "uuid")}
    summary |= {
        "input": sample["input"][:_MAX_SUMMARY_CHARACTERS],
        "completed": True,
        "message_count": len(sample["messages"]),
    }
    if "error" in sample:
        summary["error"] = sample["error"]["message"]
    if "limit" in sample:
        summary["limit"] = sample["limit"]["type"]
    return summary


def _began(result: Result) -> datetime:
    """The time when the run was started, or graded if that is not known."""
    started_or_graded = (result.run.started_at if result.run else None) or (
        result.grade.created_at if result.grade else None
    )
    return _aware(started_or_graded or datetime.fromtimestamp(0, UTC))


def _aware(moment: datetime) -> datetime:
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _write(archive: zipfile.ZipFile, name: str, content: Any) -> None:
    archive.writestr(name, plain_json.dumps(content))
