"""mlebench regrade."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from common.errors import UserError
from common.units import counted
from competitions.editions import EDITIONS, Edition
from flows.commands.answers import answer, say, takes_json
from flows.commands.failures import Failures
from flows.commands.options import LEADERBOARD, StoreOptions, takes
from flows.commands.types import RUN_GROUP
from grading.words import in_words

if TYPE_CHECKING:
    from grading.medals import Leaderboard
    from storage.runs.folders import StoredRun
    from storage.runs.records import GradeRecord


@click.command("regrade")
@click.argument("run_group", type=RUN_GROUP)
@click.option("--edition", type=click.Choice(EDITIONS), help="Edition to grade with. Default: that of the runs.")
@click.option(
    "--as", "new_group", metavar="NEW_GROUP", help="Leave RUN_GROUP unchanged, and write the grades as this group."
)
@LEADERBOARD.named("leaderboard", default="stored")
@takes(storage=StoreOptions)
@takes_json
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
    from storage.runs.folders import group_exists, no_runs, stored_runs
    from storage.store import check_run_group
    from tasks.report import write_report, write_tables

    store = storage.open()
    runs = stored_runs(store, run_group)
    if not runs:
        raise no_runs(store, run_group)
    target = check_run_group(new_group or run_group)
    if new_group and group_exists(store, new_group):
        raise UserError(f"group {new_group!r} exists already; choose another name")
    store.require_usable()
    failures = Failures()
    changed = failed = 0
    for run in runs:
        try:
            before, after = _regrade(run, target, edition, leaderboard)
        except Exception as error:
            failures.tell(run.folder.name, error)
            continue
        failed += after.outcome == "failed"
        old, new = (in_words(grade.to_row() if grade else None) for grade in (before, after))
        answer({"run": run.folder.name, "before": before and before.to_json(), "after": after.to_json()})
        if old != new:
            changed += 1
            say(f"{after.competition_id} seed {after.seed}: {old} -> {new}")
    if failures.count == len(runs):
        raise UserError("no run could be graded; see the causes above")
    write_tables(store, target)
    failed += failures.count
    say(f"{counted(len(runs), 'run')} graded, {changed} changed" + (f", {failed} failed" if failed else ""))
    report = write_report(store, [target])
    say(store.shown(report))
    return 1 if failed else 0


def _regrade(
    run: StoredRun, group: str, edition: Edition | None, leaderboard: Leaderboard
) -> tuple[GradeRecord | None, GradeRecord]:
    """Grade one run again; returns the grade before, if there was one, and after."""
    from common.settings import get_settings
    from storage.runs.evidence.group_manifest import head_of_run
    from storage.runs.evidence.signatures import sign_record
    from tasks.grading import grade_submission
    from tasks.wiring.attempts import note_in_manifest

    record = run.record
    chosen_edition = edition or record.edition
    # `run` and `evaluate` read the grade in the run's own edition. A grade in another edition has a separate file.
    other_edition = None if chosen_edition == record.edition else chosen_edition
    before = run.folder.read_grade(other_edition) or run.folder.read_grade()
    target = replace(run.folder, run_group=group)
    if target != run.folder:
        record = record.replace(run_group=group, submission_from=run.source)
        other_edition = None
    graded, snapshots = grade_submission(run.folder.store, record, run.source, chosen_edition, leaderboard)
    if target != run.folder:
        # The copy of a run has the edition and the dataset of its grade, so that it can be graded again.
        key = get_settings().ledger_key.get_secret_value()
        copy = sign_record(record.replace(edition=chosen_edition, dataset_key=graded.dataset_key, signature=None), key)
        head = head_of_run(copy.to_json())
        note_in_manifest(run.folder.store, group, "copied", run=f"{record.competition_id}/{record.seed}", head=head)
        target.write_run(copy)
    target.write_snapshots(snapshots, other_edition)
    target.write_grade(graded, other_edition)
    return before, graded
