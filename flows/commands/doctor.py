"""mlebench doctor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from common.units import counted
from flows.commands.answers import answer, takes_json
from flows.commands.options import Selection, StoreOptions, raw_directory, takes
from flows.commands.quantities import DURATION
from flows.commands.tables import Cell, show_table

if TYPE_CHECKING:
    from flows.diagnosis.health import Finding

_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


@click.command("doctor")
@takes(selection=Selection)
@click.option(
    "--raw-dir",
    type=click.Path(path_type=Path),
    help="A directory of downloads: <id>.zip files, or folders <id>/ with their content.",
)
@click.option(
    "--fix",
    is_flag=True,
    help="Clean up after processes that died: mark their flow runs as crashed and submit those of deployments again, "
    "free concurrency slots, stop abandoned containers, remove work folders of stored runs.",
)
@click.option(
    "--silent-for",
    type=DURATION,
    metavar="TIME",
    help="Consider a flow run dead after this time without a heartbeat. Default: three times its heartbeat interval.",
)
@takes(storage=StoreOptions)
@takes_json
def command(
    selection: Selection, raw_dir: Path | None, fix: bool, silent_for: float | None, storage: StoreOptions
) -> int:
    """Check the requirements of a long run: store, disk, access, memory, Docker, bubblewrap, Dask,
    Prefect, workers and versions.

    Checks the 22 competitions of the low split unless others are selected. Also reports what dead processes have left
    behind. Exit code 1 if a check fails.
    """
    from common.settings import get_settings
    from flows.diagnosis import health, leftovers, server, workers
    from flows.preparing import Preparing

    ids = (selection or replace(selection, lite=True)).ids()
    store, settings = storage.open(new=True), get_settings()
    raw = raw_directory(raw_dir)

    checked_store = health.guarded("store", lambda: health.check_store(store))
    answers = not failed_in(checked_store, "store")

    def unprepared() -> list[str]:
        if not answers:
            return ids
        states = Preparing(ids, store.root, raw_dir=raw).states(store)
        return [name for name, state in states.items() if state not in ("prepared", "made")]

    silence = None if silent_for is None else timedelta(seconds=silent_for)
    of_store = (
        ("datasets", lambda: health.check_datasets(store, ids)),
        ("disk", lambda: health.check_disk(store, ids, raw)),
        ("availability", lambda: health.check_availability(store, ids, raw)),
    )
    findings = health.guarded("versions", health.check_versions) + checked_store
    findings += [
        finding
        for about, check in (
            *(of_store if answers else ()),  # each would wait for it again
            ("scratch", lambda: health.check_scratch(settings, store, ids)),
            ("temporary", health.check_temporary),
            ("memory", lambda: health.check_memory(settings.agents)),
            ("kaggle", lambda: health.check_access(unprepared(), raw, settings.network_timeout)),
            ("dask", lambda: health.check_dask(settings)),
            ("prefect", server.check_prefect),
            ("docker", health.check_docker),
            ("rootless", lambda: health.check_rootless(settings.scratch)),
            ("agents", lambda: leftovers.check_host(fix)),
        )
        for finding in health.guarded(about, check)
    ]
    # Leftovers are looked up on the Prefect server; if it does not answer, the finding above says so.
    if not failed_in(findings, "prefect"):
        findings += health.guarded("workers", lambda: workers.check_workers(settings.agent_pool))
        findings += health.guarded("flow runs", lambda: leftovers.check_flow_runs(fix, silence))
        findings += health.guarded("slots", lambda: leftovers.check_slots(fix))
        findings += health.guarded("containers", lambda: leftovers.check_containers(fix))
    if answers:
        findings += health.guarded("folders", lambda: leftovers.check_scratch(store, fix))
    failed = sum(finding.verdict == "fail" for finding in findings)
    if answer(findings):
        return 1 if failed else 0
    show_findings(findings)
    click.echo(f"{failed} of {counted(len(findings), 'check')} failed" if failed else "all checks passed")
    if not selection:
        click.echo("Checked for the 22 competitions of the low split; -c ID or --split NAME selects others.")
    return 1 if failed else 0


def failed_in(findings: Sequence[Finding], about: str) -> bool:
    """Whether the check of that name has failed."""
    return any((finding.about, finding.verdict) == (about, "fail") for finding in findings)


def show_findings(findings: Sequence[Finding]) -> None:
    """Print the findings as a table, with the remedy of those that are not ok."""
    rows: list[tuple[Cell, ...]] = []
    for finding in findings:
        remedy = f" -> {finding.remedy}" if finding.remedy and finding.verdict != "ok" else ""
        rows.append(((finding.verdict, _STYLES[finding.verdict]), finding.about, f"{finding.message}{remedy}"))
    show_table(("", "CHECK", "FINDING"), rows)
