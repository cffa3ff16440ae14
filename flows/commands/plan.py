"""`mlebench run --dry-run`: what a command would prepare and run."""

from __future__ import annotations

from collections import Counter

import click

from common.errors import UserError
from common.units import counted, duration
from storage.dataset import Dataset
from tasks.wiring.requests import Attempt, RunRequest


def show_plan(request: RunRequest, competition_ids: list[str], raw_dir: str | None) -> None:
    """Print what is to be done for each competition and each run. Changes nothing."""
    from common.settings import get_settings
    from sandbox.definitions import load_agent
    from tasks.agent_run import attempts_of
    from tasks.wiring.caps import stated_limits
    from tasks.wiring.stores import already_prepared, open_store

    settings, store = get_settings(), open_store(request.store)
    counts: Counter[str] = Counter()
    for name in competition_ids:
        prepared = already_prepared(store, Dataset(request.edition, name), raw_dir)
        click.echo(f"{name}: {'prepared' if prepared else 'to be downloaded and prepared'}")
        for attempt in attempts_of(request, name):
            what = _state(attempt)
            counts[what.partition(":")[0]] += 1
            click.echo(f"  seed {attempt.seed}: {what}")
    limits = stated_limits(load_agent(request.agent, settings.agent_dirs), request, settings)
    runs = counts["to be run"] + counts["to be run again"]
    longest = f"at most {duration(limits.time_limit_seconds)} each, {settings.agents} at the same time"
    click.echo(f"Run group {request.run_group}: {counted(runs, 'run')} to do" + (f", {longest}" if runs else ""))
    done = sum(counts.values()) - runs
    if done:
        click.echo(", ".join(f"{count} {what}" for what, count in counts.items() if not what.startswith("to be run")))


def _state(attempt: Attempt) -> str:
    from tasks.agent_run import finished_run
    from tasks.grade import finished_grade, grade_request
    from tasks.wiring.making import run_folder
    from tasks.wiring.overwriting import require_replaceable

    if attempt.dataset_key is not None:
        try:
            require_replaceable(attempt)
        except UserError as error:
            return f"refused: {error}"
    record = finished_run(attempt)
    if record is None:
        before = run_folder(attempt).read_run()
        return f"to be run again: it is {before.status}" if before is not None else "to be run"
    return "finished" if finished_grade(grade_request(attempt)) else "finished, to be graded"
