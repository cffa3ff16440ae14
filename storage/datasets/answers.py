"""Which dataset has the answers to what an agent made."""

from __future__ import annotations

from dataclasses import replace

from common.errors import UserError
from competitions import registry
from competitions.editions import Edition
from storage.dataset import Dataset
from storage.datasets.current import find, keys_of_shared, read_current, require
from storage.store import Store


def answers_to(store: Store, own: Dataset, edition: Edition, what: str) -> Dataset:
    """The dataset to grade a run with: in its own edition the one that it was made on, in another the current one.

    Where two editions have the same files, both are graded with the same dataset. In another edition with other files,
    the dataset must be made of the same download with the same parameters, as far as that is known.

    Args:
        store: store of the datasets.
        own: the dataset that the run was made on; without a key it is not known, and the current one is taken.
        edition: edition to grade in.
        what: the run, for messages.

    Raises:
        UserError: there is no such dataset.
    """
    if edition == own.edition:
        found = find(store, own)
        if found is None and own.key is not None and (now := find(store, replace(own, key=None))):
            raise UserError(
                f"{what} was made on the dataset {own.key} of {own}, which {store.root} no longer has (now: "
                f"{now.key}); its submission cannot be graded with other answers: run the agent again"
            )
        return found or require(store, own)
    if own.key is not None and _same_files(own, edition) and (shared := find(store, replace(own, edition=edition))):
        return shared
    other = require(store, Dataset(edition, own.competition_id))
    theirs = read_current(store, other).own_recipes(other.key)
    ours = read_current(store, own).own_recipes(own.key)
    if ours and theirs and not any((a.download, a.params) == (b.download, b.params) for a in ours for b in theirs):
        raise UserError(
            f"{what} was made on a dataset of {own} from another download, or with other parameters, than "
            f"the current dataset of {other}; its submission cannot be graded with those answers"
        )
    return other


def require_consistent(store: Store, named: Dataset) -> None:
    """Raise `UserError` if the key of `named` is that of a dataset of another edition, with other files.

    Datasets of editions that share their files, or did so once, have one key in both.
    """
    found = find(store, named)
    if found is None or found.home == named.edition or _same_files(named, found.home):
        return
    if found.key not in keys_of_shared(store, named):
        raise UserError(
            f"the dataset {named.key} is one of {replace(found, edition=found.home)}, not of {named}: correct the "
            "edition or the dataset_key"
        )


def _same_files(own: Dataset, edition: Edition) -> bool:
    """Whether an edition has the files of the one that a run was made in."""
    competition = registry.get(own.competition_id)
    return competition.files_of(edition) == competition.files_of(own.edition)
