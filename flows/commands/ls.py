"""mlebench ls."""

from __future__ import annotations

import click

from common.errors import UserError
from flows.commands.options import StoreOptions, takes
from flows.judged import judged
from storage.store import Store

_RUN = "run.json"


@click.command("ls")
@click.argument("run_group", required=False)
@takes(storage=StoreOptions)
def command(run_group: str | None, storage: StoreOptions) -> None:
    """List the run groups in the store, or the runs of RUN_GROUP.

    Read from the records of the runs, so that a group in progress shows its finished runs.
    """
    place = readable(storage.open())
    lines = _runs(place, run_group) if run_group else _groups(place)
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for line in lines:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def readable(store: Store) -> Store:
    """The store, once it has answered. Raises `StoreError` if it does not."""
    from storage.remote import explain
    from storage.store import fsspec_at
    from storage.writers import StoreError

    if not store.top.local:
        try:
            fs, root = fsspec_at(store.root)
            fs.exists(root)
        except Exception as error:  # every file system has errors of its own
            raise StoreError(f"store {store.root} cannot be read: {explain(error)}") from error
    return store


def _groups(store: Store) -> list[tuple[str, ...]]:
    """One line a run group, by name."""
    found: dict[str, list[str]] = {}
    for url in store.glob(f"runs/*/*/*/{_RUN}"):
        found.setdefault(store.relative(url).split("/")[1], []).append(url)
    if not found:
        raise UserError(f"no runs in {store.root}; create some with: mlebench run")
    lines = [("RUN GROUP", "RUNS", "AGENT", "LAST FINISHED")]
    for group, urls in sorted(found.items()):
        records = [record for url in urls if (record := store.read_json(url))]
        agents = ", ".join(sorted({record["agent"] for record in records}))
        lines.append((group, str(len(urls)), agents, _time(max(record["finished_at"] for record in records))))
    return list(lines)


def _runs(store: Store, run_group: str) -> list[tuple[str, ...]]:
    """One line a finished run of the group."""
    urls = store.glob(f"runs/{run_group}/*/*/{_RUN}")
    if not urls:
        raise UserError(f"no finished runs of group {run_group!r} in {store.root}; list the groups with: mlebench ls")
    lines: list[tuple[str, ...]] = [("RUN", "STATUS", "SECONDS", "SCORE", "MEDAL")]
    for url in urls:
        run = store.read_json(url) or {}
        grade = store.read_json(url.removesuffix(_RUN) + "grade.json")
        name = store.relative(url).removeprefix("runs/").removesuffix(f"/{_RUN}")
        lines.append((name, run["status"], f"{run['duration_seconds']:.0f}", *judged(grade)))
    return lines


def _time(text: str) -> str:
    """An ISO time to the minute."""
    return text[:16].replace("T", " ")
