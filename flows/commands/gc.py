"""mlebench gc."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from common.units import data_size
from competitions.editions import EDITIONS
from flows.commands.answers import answer, say, takes_json
from flows.commands.options import StoreOptions, option, takes

if TYPE_CHECKING:
    from storage.store import Store
    from storage.upkeep.space import DiskUsage


@dataclass(frozen=True)
class Kinds:
    """The kinds of data to remove."""

    raw: Annotated[bool, option("--raw", is_flag=True, help="Remove downloaded archives of prepared competitions.")] = (
        False
    )
    edition: Annotated[
        Any,
        option("--edition", type=click.Choice(EDITIONS), help="Remove all prepared datasets of this edition."),
    ] = None
    old: Annotated[
        bool,
        option(
            "--old-datasets",
            is_flag=True,
            help="Remove prepared datasets that are no longer current; with --edition only those of that edition. Runs "
            "that were made on them can no longer be graded.",
        ),
    ] = False
    variants: Annotated[
        bool,
        option(
            "--variants",
            is_flag=True,
            help="Remove prepared small variants, which are derived again when they are needed; with --edition only "
            "those of that edition.",
        ),
    ] = False
    orphans: Annotated[
        bool,
        option(
            "--orphans",
            is_flag=True,
            help="Remove incomplete datasets, downloads and uploads that no process works on, checkpoints of runs that "
            "ended or are gone, what stored runs and killed servers of episodes left on this machine, and root file "
            "systems that no image has any more.",
        ),
    ] = False
    copies: Annotated[bool, option("--cache", is_flag=True, help="Remove local copies of prepared data.")] = False

    def __bool__(self) -> bool:
        """Whether any is chosen."""
        return self != Kinds()


@click.command("gc")
@takes(chosen=Kinds, storage=StoreOptions)
@click.option("--dry-run", "dry", is_flag=True, help="Only show what would be removed.")
@takes_json
def command(chosen: Kinds, storage: StoreOptions, dry: bool) -> int:
    """Remove data that is no longer needed, and print how much space is freed.

    Only the chosen kinds of data are removed, and nothing that a process is using.
    """
    if not chosen:
        raise click.UsageError(
            "choose what to remove: --raw, --edition, --old-datasets, --variants, --orphans, --cache"
        )
    from common.settings import get_settings
    from storage.cache import Cache
    from storage.upkeep import gc

    store, settings = storage.open(), get_settings()
    contents = [] if chosen == Kinds(copies=True) else gc.everything(store)
    steps: list[Iterable[DiskUsage]] = []
    if chosen.old:
        steps.append(gc.old_datasets(store, contents, chosen.edition, dry))
    if chosen.variants:
        steps.append(gc.variants(store, contents, chosen.edition, dry))
    if chosen.edition and not (chosen.old or chosen.variants):
        steps.append(gc.edition_datasets(store, contents, chosen.edition, dry))
    if chosen.raw:
        steps.append(gc.raw_archives(store, contents, dry))
    if chosen.orphans:
        steps += [gc.orphans(store, contents, dry), _folders_of_runs(store, dry)]
        steps += [_sandboxes(settings.scratch, dry), _roots(settings.scratch, dry)]
    if chosen.copies:
        cache = Cache(settings.scratch / "cache", settings.cache_limit)
        steps.append(gc.local_copies(cache, settings.scratch, dry))
    freed_bytes = 0
    for step in steps:
        for usage in step:
            in_use = usage.state == "in use"
            done = "kept" if in_use else "would remove" if dry else "removed"
            answer({"done": done, "kind": usage.kind, "name": usage.name, "state": usage.state, "bytes": usage.bytes})
            if in_use:
                say(f"kept {usage.kind} {usage.name}: in use")
                continue
            freed_bytes += usage.bytes
            say(f"{done} {usage.kind} {usage.name} {usage.state}, {data_size(usage.bytes)}")
    say(f"{data_size(freed_bytes)} {'would be freed' if dry else 'freed'}")
    return 0


def _folders_of_runs(store: Store, dry: bool) -> Iterator[DiskUsage]:
    """Remove folders on the scratch disk of runs that are stored."""
    from competitions.preparing.archives.listing import sizes_on_disk
    from storage.upkeep.space import DiskUsage
    from tasks.wiring.storing import leftover_folders, remove_folder

    for folder in leftover_folders(store):
        sizes = list(sizes_on_disk(str(folder)))
        if dry or remove_folder(folder):
            yield DiskUsage("scratch", folder.name, str(folder), sum(sizes), len(sizes))


def _roots(scratch: Path, dry: bool) -> Iterator[DiskUsage]:
    """Remove root file systems that no image has any more."""
    from sandbox.rootless.roots import remove_unused
    from storage.upkeep.space import DiskUsage

    for entry in remove_unused(scratch, dry=dry):
        yield DiskUsage("roots", entry.digest[:12], entry.digest, entry.bytes, 0, "in use" if entry.in_use else "old")


def _sandboxes(scratch: Path, dry: bool) -> Iterator[DiskUsage]:
    """End the sandboxes of episodes whose server was killed, and remove their folders."""
    from common.locks import locked
    from competitions.preparing.archives.listing import sizes_on_disk
    from storage.upkeep.space import DiskUsage
    from training.sandboxes import collect

    top = scratch / "episodes"
    if top.is_dir():
        with locked(top / "lock", wait=True):
            for folder in collect(top, dry):
                sizes = list(sizes_on_disk(str(folder)))
                yield DiskUsage("scratch", folder.name, str(folder), sum(sizes), len(sizes))
