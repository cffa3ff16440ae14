"""mlebench prepare."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, Any

import click

from common.errors import UsageError, UserError
from common.units import listed
from competitions import registry
from competitions.editions import EDITIONS, Choice, Edition, chosen
from competitions.variant import LEAST_ROWS, Variant, VariantName
from flows.commands.advice import renewing
from flows.commands.answers import answer, say, takes_json
from flows.commands.availability import say_availability
from flows.commands.marks import warn_of_marks
from flows.commands.options import PreparationOptions, Selection, StoreOptions, option, raw_directory, takes
from flows.commands.types import whole
from storage.store import Store


@dataclass(frozen=True)
class OverwritingOptions:
    """Options that replace what is stored of a competition."""

    renew: Annotated[
        bool,
        option(
            "--renew",
            is_flag=True,
            help="Download the archives of datasets that were made by other code again, and compare: a dataset is kept "
            "if the current code makes the same files, and is otherwise prepared anew.",
        ),
    ] = False
    overwrite_checksums: Annotated[
        bool,
        option(
            "--overwrite-checksums",
            is_flag=True,
            help="Do not compare with the checksums in competition.yaml, but replace them by those of the prepared "
            "files. For competitions of your own.",
        ),
    ] = False
    overwrite_leaderboard: Annotated[
        bool,
        option(
            "--overwrite-leaderboard",
            is_flag=True,
            help="Also fetch the current leaderboards from Kaggle, as `mlebench leaderboard ID --refresh` does.",
        ),
    ] = False


@dataclass(frozen=True)
class VariantOptions:
    """Options for small variants of the selected competitions."""

    rows: Annotated[
        int | None,
        option(
            "--rows",
            type=whole(LEAST_ROWS),
            metavar="N",
            help="Also derive a small variant with N units of train and half as many of test, at least 20. It is used "
            "as competition ID--rowsN-seedK, and is no part of the benchmark.",
        ),
    ] = None
    variant_seed: Annotated[
        int | None,
        option("--variant-seed", type=whole(0), metavar="K", help="Chooses the units of the variant. Default: 0."),
    ] = None

    def of(self, ids: Iterable[str]) -> list[str]:
        """The ids of the variants; none without --rows.

        Raises `UsageError` if one is of a variant, or for a seed without --rows.
        """
        if self.rows is None:
            if self.variant_seed is not None:
                raise UsageError("--variant-seed needs --rows")
            return []
        names = [VariantName(name, self.rows, self.variant_seed or 0) for name in ids]
        for name in names:
            if isinstance(parent := registry.get(name.parent_id), Variant):
                Variant.make(parent, name)  # raises the error, before work starts
        return list(map(str, names))


@click.command("prepare")
@takes_json
@takes(
    selection=Selection,
    preparation=PreparationOptions,
    storage=StoreOptions,
    overwriting=OverwritingOptions,
    variants=VariantOptions,
)
@click.option(
    "--edition",
    type=click.Choice([*EDITIONS, "both"]),
    default="v1",
    show_default=True,
    help="v1: the published benchmark; v2: known issues fixed; both: one after the other, of one download.",
)
@click.option(
    "--official-description",
    "official",
    is_flag=True,
    help="Also fetch Kaggle's own description, and store it next to ours for agents.",
)
def command(
    selection: Selection,
    preparation: PreparationOptions,
    storage: StoreOptions,
    overwriting: OverwritingOptions,
    variants: VariantOptions,
    edition: Choice,
    official: bool,
) -> int:
    """Download, split and verify competitions.

    Already prepared competitions are skipped, and a failure does not stop the rest. Where the editions have the same
    files, they share one dataset. With --rows, small variants are derived from the prepared datasets. Competitions
    that not everybody can download are named first, and left out if Kaggle refuses them. With --data-dir,
    other programs find the datasets of edition v1 at DATA_DIR/ID/prepared. Exit code 1 if any failed, or if all are
    unavailable.
    """
    ids = selection.ids()
    variant_ids = variants.of(ids)
    preparation.apply()
    if overwriting.overwrite_checksums:
        from flows.commands.checksums import require_overwritable

        require_overwritable(ids, edition)
        preparation = replace(preparation, skip_verification=True)
    warn_of_marks(ids)
    store = storage.open_usable(new=True)
    code = _prepare([*ids, *variant_ids], store, preparation, edition, overwriting.renew)
    if usable := [name for name in variant_ids if _is_prepared(store, name, edition)]:
        say(f"To use variants: {' '.join(f'-c {name}' for name in usable)}")
    if storage.data_dir is not None:
        from storage.datasets.published_layout import link_published_layout

        for name in ids:
            link_published_layout(store, name)
    if official:
        code = max(code, _official(ids, store, chosen(edition)))
    if overwriting.overwrite_checksums:
        from flows.commands.checksums import overwrite

        code = max(code, overwrite(ids, store))
    if overwriting.overwrite_leaderboard:
        from flows.commands.leaderboard import fetch_each

        on_kaggle = [each for each in map(registry.get, ids) if each.facts.source == "kaggle"]
        code = max(code, fetch_each(on_kaggle, store))
    return code


def _is_prepared(store: Store, name: str, edition: Choice) -> bool:
    from storage.dataset import Dataset
    from storage.datasets.current import find

    return all(find(store, Dataset(each, name)) is not None for each in chosen(edition))


def _prepare(ids: list[str], store: Store, options: PreparationOptions, edition: Choice, renew: bool) -> int:
    """Prepare what is not prepared yet; returns the exit code."""
    from flows.preparing import Outlook, Preparing
    from storage.datasets.prepared import left_out_of

    raw = raw_directory(options.raw_dir)
    preparing = Preparing(ids, store.root, edition, raw, options.keep_raw, options.skip_verification, renew)
    outlook = Outlook.of(store, preparing)
    if not outlook.todo:
        answer([{"kind": "outcome", "what": name, "result": "reused", "message": "prepared already"} for name in ids])
        say(f"{len(ids)} reused: all are already prepared in {store.root}")
        for name in ids:
            if left_out := left_out_of(store, name, chosen(edition)):
                say(f"{name}: {left_out}")
        show_other_code(store, ids)
        return 0
    say_availability(store, ids, chosen(edition), raw)
    outlook.require_some(raw)
    from flows.commands.session import run_flow

    def flow() -> Any:
        from flows.prepare import prepare

        return prepare(**vars(preparing))

    code = run_flow(f"Preparing in {store.root}", flow)
    show_other_code(store, ids)
    return code


def show_other_code(store: Store, ids: Iterable[str] | None = None) -> None:
    """Print a line if datasets were made by other code than the current one; of all competitions or of some."""
    from storage.datasets.prepared import made_by_other_code

    outdated = made_by_other_code(store, ids)
    if outdated:
        say(
            f"{len(outdated)} prepared by other code, used as they are: {listed(outdated, 5)}; "
            f"`{renewing(outdated, store)}` compares them with what the current code makes"
        )


def _official(ids: list[str], store: Store, editions: Sequence[Edition]) -> int:
    """Store Kaggle's description next to ours in all prepared datasets; returns the exit code."""
    from common.settings import get_settings
    from storage.dataset import Dataset
    from storage.datasets.current import find
    from storage.sources.kaggle.pages import write_official_description

    code, timeout = 0, get_settings().network_timeout
    for competition, edition in product(map(registry.get, ids), editions):
        dataset = Dataset(edition, competition.id)
        current = find(store, dataset)
        if competition.facts.source != "kaggle" or current is None:
            continue
        try:
            url = write_official_description(store, current, competition, timeout)
            click.echo(f"{competition.id}: {url}")
        except UserError as error:
            click.echo(f"mlebench: {error}", err=True)
            code = 1
    return code
