"""mlebench cancel."""

from __future__ import annotations

import click

from common.errors import UserError
from flows.commands.options import quiet_prefect


@click.command("cancel")
@click.argument("group")
@click.option(
    "--wait",
    type=click.FloatRange(0),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for the hosts to confirm.",
)
def command(group: str, wait: float) -> int:
    """End the attempts of a run group in a work pool.

    Those that wait are not started. Agents that run are ended within their grace period; what they have handed in is
    kept, and their records say `cancelled`. Running the group again makes cancelled attempts again.
    """
    quiet_prefect()
    from flows.fleet.groups import cancel, group_runs
    from flows.fleet.setup import require_server
    from storage.store import check_run_group

    require_server()
    check_run_group(group)
    runs = group_runs(group)
    if not runs.attempts and not runs.watchers:
        raise UserError(f"group {group!r} has no attempts on the Prefect server")
    done, waiting = cancel(group, wait)
    for name in done:
        click.echo(f"  cancelled {name}")
    for name in waiting:
        click.echo(f"  not confirmed {name}: its host does not answer")
    click.echo(f"{len(done)} cancelled, {len(waiting)} not confirmed" if done or waiting else "all had ended already")
    return 1 if waiting else 0
