"""mlebench verify."""

from __future__ import annotations

import click

from common.errors import UserError
from flows.commands.options import StoreOptions, takes


@click.command("verify")
@click.argument("run_group")
@takes(storage=StoreOptions)
def command(run_group: str, storage: StoreOptions) -> int:
    """Verify the evidence of every run of RUN_GROUP against the files in the store.

    The hash chain of each run (ledger.jsonl) is recomputed, and every file that it covers is read again. Signatures are
    checked as well if MLEBENCH_LEDGER_KEY is set. Files and folders of the group that belong to no run are reported.
    Exit code 1 if anything differs.
    """
    from common.settings import get_settings
    from storage.runs.evidence.seal import find_strangers, verify_group

    place = storage.open()
    key = get_settings().ledger_key.get_secret_value()
    results = verify_group(place, run_group, key)
    strangers = find_strangers(place, run_group)
    if not results and not strangers:
        raise UserError(f"no runs of group {run_group!r} in {place.root}")
    for name, problems in sorted([*results.items(), *((path, [problem]) for path, problem in strangers.items())]):
        click.echo(f"{'FAILED' if problems else 'ok':7} {run_group}/{name}")
        for problem in problems:
            click.echo(f"        {problem}")
    failed = sum(bool(problems) for problems in results.values())
    checked = "signatures checked" if key else "no key, signatures not checked"
    others = f", {len(strangers)} not part of the group" if strangers else ""
    click.echo(f"{len(results) - failed} of {len(results)} runs verified{others} ({checked})")
    return 1 if failed or strangers else 0
