"""mlebench open."""

from __future__ import annotations

import webbrowser

import click

from common.errors import UserError, close_matches
from flows.commands.advice import advised
from flows.commands.options import StoreOptions, takes
from flows.commands.types import RUN_GROUP


@click.command("open")
@click.argument("run_groups", type=RUN_GROUP, nargs=-1, required=True)
@takes(storage=StoreOptions)
def command(run_groups: tuple[str, ...], storage: StoreOptions) -> None:
    """Open the report of RUN_GROUPS in the browser, and print its address.

    The address of a report on S3 is signed, and valid for seven days.
    """
    from tasks.report import report_name

    store = storage.open()
    groups = list(dict.fromkeys(run_groups))
    url = store.url("reports", report_name(groups), "report.html")
    if not store.exists(url):
        write = advised(f"mlebench report {' '.join(groups)}", store)
        close = close_matches(report_name(groups), store.folder_names("reports"))
        raise UserError(f"no report of {' and '.join(groups)} in {store.root}; `{write}` writes it.{close}")
    local = store.local(store.relative(url))
    address = local.as_uri() if local else store.browser_url(url)
    click.echo(address)
    if not webbrowser.open(address):
        click.echo("no browser found: open the address above", err=True)
