"""mlebench cancel."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from common.causes import explain
from common.errors import UsageError, UserError
from flows.commands.answers import answer, takes_json
from flows.commands.completion import RUNS
from flows.commands.options import StoreOptions, takes
from flows.commands.quantities import DURATION
from storage.runs.files import is_seed
from storage.runs.folders import similar_groups

if TYPE_CHECKING:
    from sandbox.host.slots import Holder
    from tasks.wiring.cancelling import RunSelection

_POLL_SECONDS = 0.25


@click.command("cancel")
@click.argument("runs", metavar="GROUP[/ID[/SEED]]", shell_complete=RUNS)
@click.option(
    "--wait",
    type=DURATION,
    default="2m",
    show_default=True,
    metavar="TIME",
    help="How long to wait for the end of the agents.",
)
@click.option("--dry-run", "dry", is_flag=True, help="Only show which runs would be ended.")
@takes(storage=StoreOptions)
@takes_json
def command(runs: str, wait: float, dry: bool, storage: StoreOptions) -> int:
    """End the runs of a group that are in progress: all, those of one competition, or one run.

    Cancels runs on this machine and, if a Prefect server is configured, attempts in a work pool. Those that wait are
    not started. Agents that run are ended within their grace period; what they have handed in is kept, and their
    records say `cancelled`. Running the group again makes cancelled runs again.
    """
    from tasks.wiring.cancelling import RunSelection
    from tasks.wiring.prefect_server import served

    store = storage.open(new=True)  # attempts of other hosts are known to the Prefect server
    group, competition, seed = _parts(runs)
    cancelled, unconfirmed, any_known = _cancel_here(RunSelection(store.root, group, competition, seed), wait, dry)
    unknown = ""
    if served():
        from flows.fleet.groups import cancel, group_runs, in_progress
        from flows.fleet.runs import SERVER_ERRORS

        try:
            group_in_pool = group_runs(group)
            if group_in_pool.attempts or group_in_pool.watchers:
                done_in_pool, unconfirmed_in_pool = (
                    (in_progress(group, competition, seed), []) if dry else cancel(group, wait, competition, seed)
                )
                cancelled, any_known = sorted({*cancelled, *done_in_pool}), True  # some are of a worker on this machine
                unconfirmed = sorted({*unconfirmed, *unconfirmed_in_pool})
        except SERVER_ERRORS as error:
            if not any_known:
                raise
            unknown = f"runs in a work pool are not cancelled: {explain(error)}"
    if not any_known:
        groups = store.folder_names("runs")
        close = "" if group in groups else similar_groups(group, groups)
        raise UserError(
            f"nothing of {runs} in {store.root} is in progress on this machine or known to a Prefect server"
            f"{'.' if close else ''}{close}"
        )
    if dry:
        if not answer({"would_cancel": cancelled}):
            click.echo("\n".join(f"  would cancel {name}" for name in cancelled) or "all had ended already")
        return 0
    if answer({"cancelled": cancelled, "not_confirmed": unconfirmed}):
        return 1 if unconfirmed or unknown else 0
    for name in cancelled:
        click.echo(f"  cancelled {name}")
    for name in unconfirmed:
        click.echo(f"  not confirmed {name}: its host does not answer")
    click.echo(
        f"{len(cancelled)} cancelled, {len(unconfirmed)} not confirmed"
        if cancelled or unconfirmed
        else "all had ended already"
    )
    if unknown:
        raise UserError(unknown)
    return 1 if unconfirmed else 0


def _parts(runs: str) -> tuple[str, str | None, int | None]:
    """Group, competition and seed. Raises `UsageError` for a text of another form."""
    from storage.store import check_run_group

    group, *rest = runs.strip("/").split("/")
    if len(rest) > 2 or (len(rest) == 2 and not is_seed(rest[1])):
        raise UsageError(
            f"{runs!r}: give GROUP, GROUP/COMPETITION or GROUP/COMPETITION/SEED, as `mlebench ls` lists them"
        )
    return check_run_group(group), rest[0] if rest else None, int(rest[1]) if len(rest) > 1 else None


def _cancel_here(selection: RunSelection, patience: float, dry: bool) -> tuple[list[str], list[str], bool]:
    """Cancel runs on this machine; returns those that have ended, those that have not, and whether there were any."""
    from tasks.wiring.requests import run_name

    running, waiting = selection.running(), selection.waiting()
    if not running and not waiting:
        return [], [], False
    if not dry:
        selection.cancel()

    def names(claims: list[dict[str, str]]) -> list[str]:
        return [run_name(labels["competition"], int(labels["seed"])) for labels in claims]

    still_running: list[Holder] = []
    give_up = time.monotonic() + patience
    while not dry and (still_running := selection.running()) and time.monotonic() < give_up:
        time.sleep(_POLL_SECONDS)
    not_ended = names([run.claim.labels for run in still_running])
    cancelled = names([*waiting, *(run.claim.labels for run in running)])
    return [name for name in sorted(set(cancelled)) if name not in not_ended], sorted(set(not_ended)), True
