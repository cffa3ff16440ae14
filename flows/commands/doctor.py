"""mlebench doctor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from flows.commands.options import open_store, raw_directory, selected, selection, store_option

_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


@click.command("doctor")
@selection
@click.option("--raw-dir", type=click.Path(path_type=Path), help="Downloads that are there already.")
@store_option
def command(raw_dir: Path | None, store: str | None, data_dir: Path | None, **which: Any) -> int:
    """Look, before hours of work, whether all is there: store, space, access, memory, Docker, Dask, Prefect, versions.

    Without a selection, of the 22 competitions of the low split. Exit code 1 if anything would fail.
    """
    from rich.console import Console
    from rich.table import Table

    from flows import health
    from storage.settings import get_settings

    ids = selected(**which) if any(which.values()) else selected((), None, lite=True, everything=False, listed=None)
    place, settings = open_store(store, data_dir), get_settings()
    raw = raw_directory(raw_dir)
    findings = [
        each
        for about, check in (
            ("versions", health.check_versions),
            ("store", lambda: health.check_store(place)),
            ("disk", lambda: health.check_disk(place, ids)),
            ("scratch", lambda: health.check_scratch(settings)),
            ("memory", lambda: health.check_memory(settings.agents)),
            ("kaggle", lambda: health.check_access(ids, raw)),
            ("dask", lambda: health.check_dask(settings)),
            ("prefect", health.check_prefect),
            ("docker", health.check_docker),
        )
        for each in health.guarded(about, check)
    ]
    table = Table(box=None, show_header=False, padding=(0, 1))
    for each in findings:
        table.add_row(f"[{_STYLES[each.verdict]}]{each.verdict}[/]", each.about, f"{each.message}", style=None)
        if each.remedy and each.verdict != "ok":
            table.add_row("", "", f"[cyan]{each.remedy}[/]")
    console = Console(highlight=False)
    console.print(table)
    failed = sum(each.verdict == "fail" for each in findings)
    console.print(f"{failed} of {len(findings)} fail" if failed else "all is there")
    return 1 if failed else 0
