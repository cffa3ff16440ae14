"""mlebench verify."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from common.errors import UserError
from common.texts import read_text
from flows.commands.answers import answer, say, takes_json
from flows.commands.options import StoreOptions, takes
from flows.commands.types import RUN_GROUP

if TYPE_CHECKING:
    from storage.runs.evidence.signatures import Problem
    from storage.store import Store


@click.command("verify")
@click.argument("run_group", type=RUN_GROUP)
@click.option(
    "--public-key",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File with the Ed25519 public key (PEM) that belongs to the operator's MLEBENCH_LEDGER_KEY.",
)
@click.option("--regrade", is_flag=True, help="Also grade the submissions again, and compare. Nothing is written.")
@takes(storage=StoreOptions)
@takes_json
def command(run_group: str, public_key: Path | None, regrade: bool, storage: StoreOptions) -> int:
    """Verify the evidence of every run of RUN_GROUP against the files in the store.

    Every file of a run is read again and compared with the ledger of the run (ledger.jsonl). Runs are
    compared with the manifest of the group, which shows runs that were removed, repeated or brought from elsewhere.
    Signatures are checked as well if MLEBENCH_LEDGER_KEY is set or --public-key is given. Files and folders of the
    group that belong to no run are reported. Exit code 1 if anything differs.
    """
    from common.settings import get_settings
    from storage.runs.evidence.verify import find_unexpected, verify_group
    from storage.runs.folders import folders, no_runs, read_runs
    from storage.training_mark import marked
    from tasks.wiring.requests import switched_on

    store = storage.open()
    if public_key is not None:
        key = read_text(public_key, f"the public key {public_key}")
    else:
        key = get_settings().ledger_key.get_secret_value()
    verification = verify_group(store, run_group, key)
    results, manifest, notes = verification.problems, verification.manifest, verification.notes
    unexpected = find_unexpected(store, run_group)
    if not results and not unexpected:
        raise no_runs(store, run_group)
    if regrade:
        for name, problems in _grades_that_differ(store, run_group):
            results.setdefault(name, []).extend(problems)
    for name, problems in sorted([*results.items(), *((path, [problem]) for path, problem in unexpected.items())]):
        say(f"{'FAILED' if problems else 'ok':7} {run_group}/{name}")
        for problem in problems:
            say(f"        {problem}")
    if manifest.entries:
        if 0 < manifest.unsigned < len(manifest.entries):
            say(
                f"note    the manifest's first entries ({manifest.unsigned}), and the runs that they name, were made "
                "without a key; the first signed entry contains their hash"
            )
        for note in notes:
            say(f"note    {run_group}/{note}")
        say(f"manifest: {len(manifest.entries)} entries, the last one has the hash {manifest.head}")
    conditions = switched_on([run.record for run in read_runs(store, folders(store, run_group), skip_invalid=True)])
    if conditions:
        say(f"conditions: {', '.join(conditions.values())}")
    trained = marked(store)
    if trained:
        say(f"note    agents were trained in this store with scores on the benchmark's test sets, {trained}")
    failed = sum(bool(problems) for problems in results.values())
    runs = results.keys() - {"manifest"}
    checked = "signatures checked" if key else "no key, signatures not checked"
    unexpected_note = f", {len(unexpected)} not part of the group" if unexpected else ""
    verified_count = sum(not results[name] for name in runs)
    say(f"{verified_count} of {len(runs)} runs verified{unexpected_note} ({checked})")
    answer(
        {
            "run_group": run_group,
            "verified": not failed and not unexpected,
            "conditions": list(conditions),
            "trained_with_test_scores": trained,
            "runs": [
                {"run": f"{run_group}/{name}", "problems": [str(problem) for problem in results[name]]}
                for name in sorted(runs)
            ],
            "manifest": {
                "entries": len(manifest.entries),
                "head": manifest.head,
                "problems": [str(problem) for problem in results.get("manifest", [])],
                "notes": notes,
            },
            "not_of_the_group": {path: str(problem) for path, problem in sorted(unexpected.items())},
            "signatures_checked": bool(key),
        }
    )
    return 1 if failed or unexpected else 0


def _grades_that_differ(store: Store, run_group: str) -> Iterator[tuple[str, list[Problem]]]:
    """Grade each graded run again, and yield what differs from its grade, by COMPETITION/SEED."""
    from common.causes import explain
    from grading.medals import STORED, Leaderboard
    from storage.runs.evidence.signatures import Problem
    from storage.runs.folders import stored_runs
    from tasks.grading import grade_submission

    for run in stored_runs(store, run_group):
        name = f"{run.record.competition_id}/{run.record.seed}"
        for before in run.folder.read_grades():
            board: Leaderboard = STORED if before.leaderboard in (None, STORED) else "refreshed"
            try:
                after, _ = grade_submission(store, run.record, run.source, before.edition, board)
            except UserError as error:
                yield name, [Problem("grade", f"cannot be compared: {explain(error)}")]
                continue
            # The thresholds of a fetched leaderboard may have changed since.
            fields = _REGRADED_FIELDS + (_MEDALS if board == STORED else ())
            pairs = [(field, getattr(before, field), getattr(after, field)) for field in fields]
            yield (
                name,
                [
                    Problem("grade", f"{field} is {old}, graded again it is {new}")
                    for field, old, new in pairs
                    if old != new and not (old != old and new != new)
                ],
            )


_REGRADED_FIELDS = ("outcome", "score", "feedback", "public_score", "score_with_public_rows")
_MEDALS = ("gold_medal", "silver_medal", "bronze_medal", "any_medal", "above_median")
