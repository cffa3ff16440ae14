"""mlebench verify."""

from __future__ import annotations

from pathlib import Path

import click

from common.errors import UserError
from flows.commands.options import open_store, store_option


@click.command("verify")
@click.argument("run_group")
@store_option
def command(run_group: str, store: str | None, data_dir: Path | None) -> int:
    """Check the evidence of every run of RUN_GROUP against what the store holds.

    The hash chain in each run's `ledger.jsonl` is computed again, and every file that it covers is read again. With
    MLEBENCH_LEDGER_KEY set, signatures are checked too. Exit code 1 if anything disagrees.
    """
    from common.settings import get_settings
    from storage.runs.evidence.seal import verify_group

    place = open_store(store, data_dir)
    key = get_settings().ledger_key.get_secret_value()
    results = verify_group(place, run_group, key)
    if not results:
        raise UserError(f"no runs of group {run_group!r} in {place.root}")
    for name, problems in sorted(results.items()):
        click.echo(f"{'FAILED' if problems else 'ok':7} {run_group}/{name}")
        for problem in problems:
            click.echo(f"        {problem}")
    failed = sum(bool(problems) for problems in results.values())
    checked = "signatures checked" if key else "no key, signatures not checked"
    click.echo(f"{len(results) - failed} of {len(results)} runs verified ({checked})")
    return 1 if failed else 0
