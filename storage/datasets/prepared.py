"""The prepared datasets of a store: whether preparing would change them, and which has the answers to a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

from common.errors import UserError
from competitions import registry
from competitions.editions import Edition
from competitions.preparing.declaration import LeftOut
from competitions.variant import Variant
from storage.dataset import Dataset
from storage.datasets.current import (
    Current,
    competitions_of,
    find,
    keys_of_shared,
    not_prepared,
    read_current,
    read_marker,
    require,
)
from storage.datasets.job import Recipe, code_of, recipe_of
from storage.datasets.verify import is_verified
from storage.sources import BUNDLED, Source
from storage.sources.acquire import DownloadRecord, has_archive, recorded, serves
from storage.store import Store

DataState = Literal["prepared", "made", "downloaded", "missing"]
"""Of a dataset: nothing is to be done; its files are there, and are to be verified or noted; its download is at hand;
neither is there."""


class Data(NamedTuple):
    """How much of a dataset is there, and the hash of its download, which is empty if that is not known."""

    state: DataState
    download: str


def committed_key(store: Store, dataset: Dataset) -> str | None:
    """The key of the dataset, or of the current one if it has no key; None if there is no such complete dataset."""
    committed = find(store, dataset)
    return committed.key if committed else None


def left_out(store: Store, dataset: Dataset) -> list[LeftOut]:
    """What preparing left out of the training data of a dataset, of the current one if it has no key."""
    committed = find(store, dataset)
    marker = read_marker(store, committed) if committed else None
    return [LeftOut(**counts) for counts in (marker or {}).get("left_out", ())]


def left_out_of(store: Store, competition_id: str, editions: Iterable[Edition]) -> str:
    """What preparing left out of the training data in these editions, for a message; empty if there is nothing.

    For example "v2 leaves 12 of 8,920 images out of train (duplicate-photographs)". Edition v1 leaves nothing out, so
    its markers are not read.
    """
    return "; ".join(
        f"{edition} leaves {files.count:,} of {files.of:,} {files.what} out of train ({files.issue})"
        for edition in editions
        if edition != "v1"
        for files in left_out(store, Dataset(edition, competition_id))
    )


def data_of(
    store: Store,
    dataset: Dataset,
    source: Source,
    params: Mapping[str, Any] | None = None,
    *,
    verified: bool = True,
    renew: bool = False,
) -> Data:
    """How much of a dataset is there. Everything that asks whether data are prepared or downloaded asks this.

    A committed dataset counts whatever its download came from, and whether that is still there. One that was made by
    other code counts if its download is not at hand, so that it cannot be made again: it is used as it is until the
    operator decides. An adopted dataset counts until it is renewed.

    Args:
        store: store of the dataset.
        dataset: edition and competition.
        source: source of the download, should that be needed.
        params: overrides of the competition's parameters.
        verified: whether the dataset must have passed `check_dataset`.
        renew: whether a dataset made by other code, or of another download than `source` has, does not count.
    """
    competition = registry.get(dataset.competition_id)
    current = read_current(store, dataset)
    if isinstance(competition, Variant):
        return _data_of_variant(store, dataset, competition, current, renew=renew)
    record = recorded(store, competition, source, renew=renew)
    recipe = recipe_of(competition, record["hash"] if record else "", dataset.edition, params)
    if current.dataset is not None and _counts(store, current, recipe, source, record, renew):
        known = [made.download for made in current.own_recipes(current.dataset.key)] or [recipe.download]
        download = recipe.download if recipe.download in known else known[-1]
        return Data(
            "prepared" if not verified or is_verified(store, current.dataset, competition) else "made", download
        )
    files_of = competition.files_of(dataset.edition)
    if current.dataset is None and files_of != dataset.edition:
        home = data_of(store, Dataset(files_of, competition.id), source, params, verified=False, renew=renew)
        return home._replace(state="made") if home.state == "prepared" else home
    if record is not None and find(store, replace(dataset, key=current.key_of(recipe))) is not None:
        return Data("made", recipe.download)
    # A killed process may have left an archive without a record.
    stored = has_archive(store, competition, record) if record else store.exists(store.raw(competition.id))
    at_hand = stored or source.at_hand(competition)
    return Data("downloaded" if at_hand else "missing", recipe.download)


def _data_of_variant(store: Store, dataset: Dataset, variant: Variant, current: Current, *, renew: bool) -> Data:
    """How much of a variant is there. Its download is the dataset of its competition.

    Raises `UserError` if that is needed and is not prepared.
    """
    whole = Dataset(dataset.edition, variant.parent.id)
    prepared = find(store, whole)
    if prepared is None:
        if current.dataset is not None:
            return Data("prepared", "")
        raise UserError(
            f"{variant.id} is made of the prepared dataset of {variant.parent.id}; {not_prepared(store, whole)}"
        )
    made = current.dataset is not None
    if made and renew:
        made = current.state(recipe_of(variant, str(prepared.key), dataset.edition)) == "same"
    return Data("prepared" if made else "made", str(prepared.key))


def _counts(
    store: Store, current: Current, recipe: Recipe, source: Source, record: DownloadRecord | None, renew: bool
) -> bool:
    """Whether the current dataset is the one that `recipe` makes, or is used instead of it."""
    assert current.dataset is not None
    if current.adopted and not renew:
        return True
    if renew or source.name == BUNDLED:
        return record is not None and current.state(recipe) == "same"
    downloads = {made.download for made in current.own_recipes(current.dataset.key)} or {recipe.download}
    recipes = [replace(recipe, download=download) for download in downloads]
    states = {current.state(each) for each in recipes}
    if "same" in states or "other code" not in states:
        return "same" in states
    competition = registry.get(current.dataset.competition_id)
    if record is not None and record["hash"] in downloads:
        from_source = record["version"] is not None and serves(source, competition, record)
        if from_source or has_archive(store, competition, record):
            return False  # it can be made again
    return not any(find(store, replace(current.dataset, key=current.key_of(each))) for each in recipes)


def made_by_other_code(store: Store, competition_ids: Iterable[str] | None = None) -> list[Dataset]:
    """The current datasets that were made by other code than the present one, of all known competitions or of some."""
    known_ids = set(registry.folders()) if competition_ids is None else set(competition_ids)
    datasets = [Dataset(edition, name) for edition, name in competitions_of(store) if name in known_ids]
    currents = store.concurrently([partial(read_current, store, dataset) for dataset in datasets])
    return [
        current.dataset
        for current in currents
        if current.dataset and not current.adopted and not _made_by_current_code(current)
    ]


def _made_by_current_code(current: Current) -> bool:
    assert current.dataset is not None
    try:
        return current.made_by(code_of(registry.get(current.dataset.competition_id)))
    except UserError:  # a mistake in a competition folder is an error only where the competition is used
        return True


def answers_to(store: Store, own: Dataset, edition: Edition, run: str) -> Dataset:
    """The dataset to grade a run with: the one that it was made on, or, in another edition, the current one.

    Where two editions have the same files, both are graded with the same dataset. In another edition with other files,
    the dataset must be made of the same download with the same parameters, as far as that is known.

    Args:
        store: store of the datasets.
        own: the dataset that the run was made on; without a key it is not known, and the current one is taken.
        edition: edition to grade in.
        run: name of the run, for messages.

    Raises:
        UserError: there is no such dataset.
    """
    if edition == own.edition:
        committed = find(store, own)
        if committed is None and own.key is not None and (current := find(store, replace(own, key=None))):
            raise UserError(
                f"{run} was made on the dataset {own.key} of {own}, which {store.root} no longer has (now: "
                f"{current.key}); its submission cannot be graded with other answers: run the agent again"
            )
        return committed or require(store, own)
    if own.key is not None and _same_files(own, edition) and (shared := find(store, replace(own, edition=edition))):
        return shared
    other = require(store, Dataset(edition, own.competition_id))
    theirs = read_current(store, other).own_recipes(other.key)
    ours = read_current(store, own).own_recipes(own.key)
    if ours and theirs and not any((a.download, a.params) == (b.download, b.params) for a in ours for b in theirs):
        raise UserError(
            f"{run} was made on a dataset of {own} from another download, or with other parameters, than "
            f"the current dataset of {other}; its submission cannot be graded with those answers"
        )
    return other


def require_consistent(store: Store, named: Dataset) -> None:
    """Raise `UserError` if the key of `named` is that of a dataset of another edition, with other files.

    Editions that share their files, or did so earlier, have datasets with the same key.
    """
    committed = find(store, named)
    if committed is None or committed.home == named.edition or _same_files(named, committed.home):
        return
    if committed.key not in keys_of_shared(store, named):
        raise UserError(
            f"the dataset {named.key} is one of {replace(committed, edition=committed.home)}, not of {named}: correct "
            "the edition or the dataset_key"
        )


def _same_files(own: Dataset, edition: Edition) -> bool:
    """Whether an edition has the same files as the edition that a run was made in."""
    competition = registry.get(own.competition_id)
    return competition.files_of(edition) == competition.files_of(own.edition)
