"""mlebench regrade."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from common.errors import UserError
from competitions.editions import EDITIONS
from flows.commands.options import LEADERBOARD, StoreOptions, quiet_prefect, takes

if TYPE_CHECKING:
    from grading.medals import Leaderboard
    from storage.store import Store


@click.command("regrade")
@click.argument("run_group")
@click.option("--edition", type=click.Choice(EDITIONS), help="Edition to grade with. Default: that of the runs.")
@click.option(
    "--as", "new_group", metavar="NEW_GROUP", help="Leave RUN_GROUP unchanged, and write the grades as this group."
)
@LEADERBOARD.named("leaderboard", default="stored")
@takes(storage=StoreOptions)
def command(
    run_group: str,
    edition: Any,
    new_group: str | None,
    leaderboard: Any,
    storage: StoreOptions,
) -> int:
    """Grade the submissions of RUN_GROUP again with the current graders, without running agents.

    With another edition, RUN_GROUP has grades of both afterwards. Prints what has changed. Exit code 1 if any
    submission could not be graded.
    """
    quiet_prefect()
    from storage.store import check_run_group
    from tasks.aggregate import write_tables
    from tasks.report import write_report

    place = storage.open()
    records = place.glob(f"runs/{run_group}/*/*/run.json")
    if not records:
        raise UserError(f"no runs of group {run_group!r} in {place.root}")
    target = check_run_group(new_group or run_group)
    if new_group and place.glob(f"runs/{new_group}/*/*/*.json"):
        raise UserError(f"group {new_group!r} exists already; choose another name")
    changed = failed = ungraded = 0
    for url in records:
        folder = url.removesuffix("/run.json")
        try:
            before, after = _regrade(place, folder, target, edition, leaderboard)
        except UserError as error:
            click.echo(f"{place.relative(folder)}: {error}", err=True)
            failed += 1
            ungraded += 1
            continue
        failed += after["outcome"] == "failed"
        if _shown(before) != _shown(after):
            changed += 1
            click.echo(f"{after['competition_id']} seed {after['seed']}: {_shown(before)} -> {_shown(after)}")
    if ungraded == len(records):
        raise UserError(f"none of the {ungraded} runs could be graded; see the causes above")
    write_tables(place, target)
    click.echo(f"{len(records)} runs graded, {changed} changed" + (f", {failed} failed" if failed else ""))
    report = write_report(place, [target])
    click.echo(str(place.local(place.relative(report)) or report))
    return 1 if failed else 0


def _regrade(
    store: Store, folder: str, group: str, edition: Any, leaderboard: Leaderboard
) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Grade one run again; returns the record before, if there was one, and after."""
    from storage.runs.paths import RUN
    from tasks.grade import GRADE, grade_key, grade_submission

    run = store.read_json(f"{folder}/{RUN}") or {}
    source = run.get("submission_from") or folder
    chosen = edition or run["edition"]
    before = store.read_json(f"{folder}/{_record(chosen, run, GRADE)}") or store.read_json(f"{folder}/{GRADE}")
    target = store.run(group, run["competition_id"], run["seed"])
    if target != folder:
        run = {**run, "run_group": group, "edition": chosen, "submission_from": source}
    graded = grade_submission(store, run, source, chosen, leaderboard)
    if target != folder:
        store.write_json(f"{target}/{RUN}", run)
    key = grade_key(run["competition_id"], run["key"], chosen, graded["leaderboard"])
    store.write_json(f"{target}/{_record(chosen, run, GRADE)}", {**graded, "key": key})
    return before, graded


def _record(edition: str, run: dict[str, Any], name: str) -> str:
    """The record's file: that of the run's own edition is the one which `run` and `evaluate` know."""
    return name if edition == run["edition"] else name.replace(".json", f"-{edition}.json")


def _shown(record: dict[str, Any] | None) -> str:
    if record is None:
        return "not graded"
    if record["outcome"] != "valid":
        return f"{record['outcome']} ({record['message']})"
    medals = (name for name in ("gold", "silver", "bronze") if record[f"{name}_medal"])
    return f"{record['score']} {next(medals, 'no medal')}"
