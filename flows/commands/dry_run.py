"""`mlebench run --dry-run`: what a command would prepare and run, how long that may take and what it may cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from common.errors import UserError
from common.scheduling import finish_times
from common.units import counted, data_size, duration, elapsed
from competitions import registry
from competitions.variant import Variant
from flows.commands.answers import answer
from flows.commands.availability import REMEDY, not_for_everybody, notices
from storage.store import Store
from tasks.wiring.requests import Attempt, RunRequest

if TYPE_CHECKING:
    from common.settings import Settings
    from flows.commands.preflight import Benchmark
    from flows.preparing import Outlook
    from storage.runs.records import RunRecord
    from tasks.wiring.context import RunContext

_TO_RUN = "to be run"
_REFUSED = "refused"


def show_plan(benchmark: Benchmark) -> int:
    """Print the work for each competition and each run, and the limits of time and cost. Changes nothing.

    Returns the exit code: 1 if a run, or all of them, would be refused.
    """
    from flows.commands.preflight import refusals
    from flows.preparing import Outlook
    from tasks.wiring.attempts import attempts_of

    context, ids = benchmark.context, benchmark.competition_ids
    settings, store, request = context.settings, context.store, context.request
    preparing = benchmark.preparing
    # A host that prepares looks for downloads and space itself.
    outlook = Outlook(preparing.states(store)) if benchmark.detach else Outlook.of(store, preparing)
    datasets = [_data(outlook, name, benchmark.raw_dir) for name in ids]
    runs: list[dict[str, Any]] = [
        {"competition_id": name, "seed": attempt.seed, "state": _state(context, attempt)}
        for name in ids
        for attempt in attempts_of(context, name)
    ]
    limit = context.limits.time_limit_seconds
    todo = sum(run["state"].startswith(_TO_RUN) for run in runs)
    refused = [*outlook.reasons(benchmark.raw_dir), *refusals(benchmark)]
    stated = not_for_everybody(store, ids, [request.edition], benchmark.raw_dir)
    plan = {
        "run_group": request.run_group,
        "competitions": datasets,
        "runs": runs,
        "runs_to_do": todo,
        "download_bytes": sum(data["download_bytes"] or 0 for data in datasets),
        "seconds_at_most": max(finish_times([(0, limit)] * todo, settings.agents), default=0),
        "dollars_at_most": _dollars(settings, todo),
        "so_far": _so_far(store, request),
        "availability": {name: availability.model_dump() for name, availability in stated.items()},
        "refusals": refused,
    }
    if not answer(plan):
        for line in notices(stated, len(ids)):
            click.echo(f"{line}; {REMEDY}")
        _show(plan, settings, limit)
    return 1 if refused or any(run["state"].startswith(_REFUSED) for run in runs) else 0


def _data(outlook: Outlook, name: str, raw_dir: str | None) -> dict[str, Any]:
    """The work for the data of a competition. `download_bytes` is None if the size is not known."""
    from tasks.wiring.context import download_source

    state, source = outlook.states[name], download_source(name, raw_dir).name
    remote = state == "missing" and source == "kaggle"
    competition = registry.get(name)
    derived_from = competition.parent.id if isinstance(competition, Variant) else None
    return {
        "competition_id": name,
        "prepared": state == "prepared" or (state == "made" and derived_from is None),
        "derived_from": derived_from,
        "source": source,
        "download": remote,
        "download_bytes": competition.facts.size_bytes if remote else 0,
        "verified": state == "prepared",
        "refused": name in outlook.refused or isinstance(state, Exception),
    }


def _show(plan: dict[str, Any], settings: Settings, limit: float) -> None:
    counts: Counter[str] = Counter()
    for data in plan["competitions"]:
        click.echo(f"{data['competition_id']}: {_in_words(data)}")
        for run in plan["runs"]:
            if run["competition_id"] == data["competition_id"]:
                click.echo(f"  seed {run['seed']}: {run['state']}")
                counts[run["state"].partition(":")[0]] += 1
    other_counts = [f"{count} {state}" for state, count in counts.items() if not state.startswith(_TO_RUN)]
    click.echo(", ".join([f"Run group {plan['run_group']}: {counted(plan['runs_to_do'], 'run')} to do", *other_counts]))
    downloads = [data for data in plan["competitions"] if data["download"]]
    if downloads:
        unknown = sum(download["download_bytes"] is None for download in downloads)
        unknown_part = f", and {unknown} of unknown size" if unknown else ""
        click.echo(f"Download: {data_size(plan['download_bytes'])} from Kaggle{unknown_part}")
    if plan["runs_to_do"]:
        click.echo(
            f"Time: at most {duration(limit)} each, {settings.agents} at the same time, so at most "
            f"{duration(plan['seconds_at_most'])} for the agents"
        )
        click.echo(f"Cost: {_cost(settings, plan['dollars_at_most'])}")
    if so_far := plan["so_far"]:
        cost = f" and ${so_far['mean_cost_usd']:,.2f}" if so_far["mean_cost_usd"] else ""
        runs, seconds = counted(so_far["runs"], "finished run"), elapsed(so_far["mean_seconds"])
        click.echo(f"On average, the {runs} of this group took {seconds}{cost}")
    for text in plan["refusals"]:
        click.echo(f"Refused: {text}")


def _in_words(data: dict[str, Any]) -> str:
    if data["refused"]:
        return "cannot be prepared, see below"
    if data["prepared"]:
        return "prepared already, to be reused" if data["verified"] else "prepared already, to be verified"
    if data["derived_from"]:
        return f"to be derived from {data['derived_from']}"
    if not data["download"]:
        return "to be prepared" + (
            ", from bundled data" if data["source"] == "bundled" else ", the download is at hand"
        )
    download_bytes = data["download_bytes"]
    return f"to be downloaded ({data_size(download_bytes) if download_bytes else 'size not known'}) and prepared"


def _dollars(settings: Settings, runs: int) -> float | None:
    """The maximum cost of language models for this many runs; None if nothing limits it."""
    if not settings.providers or not runs:
        return 0.0
    return None if settings.llm_dollars is None else runs * settings.llm_dollars


def _cost(settings: Settings, max_dollars: float | None) -> str:
    if not settings.providers:
        return "nothing for language models: MLEBENCH_PROVIDERS names none"
    if max_dollars is None:
        return "no limit in dollars for language models: MLEBENCH_LLM_DOLLARS sets one for each run"
    return f"at most ${settings.llm_dollars:,.2f} each for language models, so at most ${max_dollars:,.2f}"


def _so_far(store: Store, request: RunRequest) -> dict[str, Any] | None:
    """Means of the finished runs of the group, as an estimate for the others; None without any."""
    from storage.runs.folders import stored_runs

    records: Sequence[RunRecord] = [run.record for run in stored_runs(store, request.run_group)]
    seconds = [record.duration_seconds for record in records if record.duration_seconds is not None]
    if not seconds:
        return None
    cost = sum(record.gateway_cost_usd or 0.0 for record in records)
    return {"runs": len(seconds), "mean_seconds": sum(seconds) / len(seconds), "mean_cost_usd": cost / len(seconds)}


def _state(context: RunContext, attempt: Attempt) -> str:
    from tasks.wiring.attempts import attempt_folder, finished_run, require_replaceable
    from tasks.wiring.grades import finished_grade, grade_request

    if attempt.dataset_key is not None:
        try:
            require_replaceable(context, attempt)
        except UserError as error:
            return f"{_REFUSED}: {error}"
    record = finished_run(context.store, attempt)
    if record is None:
        earlier_run = attempt_folder(context.store, attempt).read_run()
        return f"{_TO_RUN} again: it is {earlier_run.status}" if earlier_run is not None else _TO_RUN
    return "finished" if finished_grade(context.store, grade_request(attempt)) else "finished, to be graded"
