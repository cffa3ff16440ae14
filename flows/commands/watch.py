"""mlebench watch."""

from __future__ import annotations

import time

import click

from common.errors import UserError
from flows.commands.answers import answer, say, takes_json
from flows.commands.options import StoreOptions, takes
from flows.commands.types import RUN_GROUP

_POLL_SECONDS = 2.0


@click.command("watch")
@click.argument("group", type=RUN_GROUP)
@click.option("--once", is_flag=True, help="Show the board once and exit.")
@takes(storage=StoreOptions)
@takes_json
def command(group: str, once: bool, storage: StoreOptions) -> int:
    """Watch the attempts of a run group in a work pool, from any machine, until all have ended.

    The board shows which attempts wait, where the others run and what they have used, and the scores. Ctrl-C ends the
    watching only: the agents go on.
    """
    from flows.fleet.queues import require_server
    from storage.store import check_run_group

    require_server()
    check_run_group(group)
    try:
        return _watch(group, once, storage)
    except KeyboardInterrupt:
        click.echo(f"\nThe agents of group {group} go on. `mlebench cancel {group}` ends them.", err=True)
        return 130


def _watch(group: str, once: bool, storage: StoreOptions) -> int:
    from common import progress
    from common.progress import Event
    from flows.commands.advice import advised
    from flows.commands.results import show_results
    from flows.commands.session import exit_code, show_outcomes
    from flows.fleet import groups
    from flows.fleet.runs import SERVER_ERRORS
    from flows.watching.board import board
    from tasks.wiring.context import open_store
    from tasks.wiring.prefect_server import asks_for_login

    store, events = None, list[Event]()
    with board(f"group {group}"):
        while True:
            try:
                runs = groups.group_runs(group)
                uses = groups.uses_of(list(runs.attempts.values()))
                silent = runs.silent_watchers()
            except SERVER_ERRORS as error:
                if asks_for_login(error):
                    raise
                if once:
                    raise UserError(f"the Prefect server does not answer: {error}") from error
                progress.report(f"group {group}", "waiting", "the Prefect server does not answer; the agents go on")
                time.sleep(_POLL_SECONDS)
                continue
            if store is None:
                is_store_given = storage.store or storage.data_dir or not runs.store
                store = storage.open(new=True) if is_store_given else open_store(runs.store)
            events = list(groups.events(runs, uses, store, group))
            if not events and not runs.unfinished:
                raise UserError(f"group {group!r} has no attempts on the Prefect server, and no runs in {store.root}")
            for event in events:
                progress.report(*event)
            for run in runs.watchers:
                active = "handing out" if run.state and run.state.is_running() else "queued"
                if run.id in silent:
                    progress.report(run.name, "silent", f"no sign since {silent[run.id]:%Y-%m-%d %H:%M:%S} UTC")
                else:
                    progress.report(run.name, active if run in runs.unfinished else "done")
            going_on = [run for run in runs.unfinished if run.id not in silent]
            if once or not (going_on or runs.crashed):
                break
            time.sleep(_POLL_SECONDS)
    if once and going_on:
        answer([event._asdict() for event in events])
        return 0
    outcomes = groups.outcomes(events)
    show_outcomes(outcomes)
    assert store is not None
    code = exit_code(outcomes)
    if silent:
        click.echo(
            f"mlebench: the command that hands out the attempts of group {group} gives no sign, and has probably died; "
            f"attempts that it had not handed out are not made. To continue, run it again with --run-group {group}.",
            err=True,
        )
        code = max(code, 1)
    if store.exists(store.url("reports", group)):
        return max(code, show_results(store, group))
    say(f"no report yet; `{advised(f'mlebench report {group}', store)}` writes it")
    return code
