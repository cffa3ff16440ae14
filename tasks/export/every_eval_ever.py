"""Results in the schema of Every Eval Ever 0.3.0 (arXiv 2606.14516), one file a run group and agent.

The schema describes evaluations of models. An agent is a model with a program around it: the file names the model that
wrote most, and the agent and the conditions beside it.
"""

from __future__ import annotations

import math
import statistics
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from common import plain_json
from common.machine import provenance
from grading.statistics.seeds import standard_error
from storage.store import Store
from storage.tables import read_table
from tasks.export.gathered import Series, file_name

SCHEMA_VERSION = "0.3.0"
RATES = {
    "any_medal": "any medal",
    "gold_medal": "gold medal",
    "silver_medal": "silver medal",
    "bronze_medal": "bronze medal",
    "above_median": "above the median team",
    "valid_submission": "valid submission",
}
UNKNOWN = "unknown"


def write_results(store: Store, series: Series, folder: Path) -> Path:
    """Write the results of a series into a folder; returns the path of the file."""
    now = datetime.now(UTC)
    content = results_of(series, _main_model(store, series), now)
    path = folder / f"{file_name(*series.name)}.every-eval-ever.json"
    path.write_text(plain_json.dumps(content, indent=2) + "\n", "utf-8")
    return path


def results_of(series: Series, model: str | None, now: datetime) -> dict[str, Any]:
    """The JSON object: rates by split with standard errors over seeds, and the mean score of each competition."""
    model = model or UNKNOWN
    dataset = {"dataset_name": series.benchmark, "source_type": "other"}
    began = [result.run.started_at for result in series.results if result.run and result.run.started_at]
    common = {"source_data": dataset, "generation_config": _generation(series)}
    scores = [score for name in series.competition_ids if (score := _competition(name, series)) is not None]
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"mle-bench-{series.edition}/{model}/{series.run_group}-{series.agent}/{now.timestamp():.0f}",
        **({"evaluation_timestamp": f"{min(began).timestamp():.0f}"} if began else {}),
        "retrieved_timestamp": f"{now.timestamp():.0f}",
        "source_metadata": {
            "source_name": "mlebench-pipeline",
            "source_type": "evaluation_run",
            "source_organization_name": UNKNOWN,
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "mlebench-pipeline", "version": provenance()["package_version"]},
        "model_info": {
            "name": model,
            "id": model,
            "additional_details": {
                "deployment_type": UNKNOWN,
                "model_availability": UNKNOWN,
                "agent": series.agent,
                "run_group": series.run_group,
            },
        },
        "evaluation_results": [{**row, **common} for row in (*_rates(series), *scores)],
    }


def _rates(series: Series) -> list[dict[str, Any]]:
    """The rates of each split that has a complete seed; the split `all` is every competition."""
    results = []
    for row in series.rates.to_dict("records"):
        words = RATES.get(str(row["rate"]))
        if words is None or math.isnan(row["mean"]):
            continue
        split = str(row["split"])
        uncertainty: dict[str, Any] = {"num_samples": int(row["seeds"])}
        if not math.isnan(row["sem"]):
            uncertainty["standard_error"] = {"value": float(row["sem"]), "method": "over seeds"}
        if not math.isnan(row["ci_low"]):
            interval = {"lower": float(row["ci_low"]), "upper": float(row["ci_high"]), "confidence_level": 0.95}
            uncertainty["confidence_interval"] = {**interval, "method": "over other runs of the same competitions"}
        results.append(
            {
                "evaluation_result_id": f"{row['rate']}/{split}",
                "evaluation_name": f"{series.benchmark}: {words}, {split}",
                "metric_config": {
                    "evaluation_description": f"Share of the {int(row['competitions'])} competitions with {words}",
                    "metric_id": str(row["rate"]),
                    "metric_name": words,
                    "metric_unit": "proportion",
                    "lower_is_better": False,
                    "score_type": "continuous",
                    "min_score": 0.0,
                    "max_score": 1.0,
                },
                "score_details": {"score": float(row["mean"]), "uncertainty": uncertainty},
            }
        )
    return results


def _competition(competition_id: str, series: Series) -> dict[str, Any] | None:
    """The mean score of a competition over seeds; None without a score."""
    results = [result for result in series.results if result.competition_id == competition_id]
    scored = [result.grade for result in results if result.grade and _finite(result.grade.score)]
    if not scored:
        return None
    values = [float(grade.score) for grade in scored if grade.score is not None]
    error = standard_error(values)
    facts = results[0].facts
    details = {"graded_runs": str(sum(result.grade is not None for result in results)), "scored_runs": str(len(values))}
    percentiles = [result.beaten for result in results]
    if all(math.isfinite(value) for value in percentiles):
        details["human_percentile"] = f"{statistics.fmean(percentiles):.4f}"
    uncertainty: dict[str, Any] = {"num_samples": len(values)}
    if not math.isnan(error):
        uncertainty["standard_error"] = {"value": error, "method": "over seeds"}
    return {
        "evaluation_result_id": f"score/{competition_id}",
        "evaluation_name": f"{series.benchmark}: {competition_id}",
        "metric_config": {
            "metric_id": f"mle-bench/{competition_id}/score",
            "metric_name": facts.metric.name if facts else "score",
            "lower_is_better": scored[0].is_lower_better,  # without a type, because "continuous" would need bounds
        },
        "score_details": {"score": statistics.fmean(values), "details": details, "uncertainty": uncertainty},
    }


def _generation(series: Series) -> dict[str, Any]:
    """The conditions of the runs, as texts, which the schema requires."""
    conditions = series.conditions()
    limit, backend = conditions.get("time_limit_seconds"), conditions.get("backend")
    arguments: dict[str, Any] = {}
    if isinstance(limit, int | float):
        arguments["eval_limits"] = {"time_limit": int(limit)}
    if isinstance(backend, str):
        arguments["sandbox"] = {"type": backend}
    texts = {name: value if isinstance(value, str) else plain_json.dumps(value) for name, value in conditions.items()}
    return {"generation_args": arguments, "additional_details": {"agent": series.agent, **texts}}


def _main_model(store: Store, series: Series) -> str | None:
    """The model that wrote most in the runs of the series; None if they asked none."""
    usage = read_table(store, "usage", [series.run_group])
    if usage.empty:
        return None
    runs = {result.run.run_id for result in series.results if result.run}
    written = usage[usage["run_id"].isin(runs)].groupby("model")["output_tokens"].sum()
    return str(written.idxmax()) if len(written) else None


def _finite(score: float | None) -> bool:
    return score is not None and math.isfinite(score)
