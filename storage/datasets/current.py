"""The current one of a competition's prepared datasets, and the recipes that are known to make it.

    prepared/<edition>/<id>/<key>/commit.json    the commit marker of a dataset
    prepared/<edition>/<id>/current.json         the key of the current one, and the recipes of all that are known;
                                                 or the edition whose current one it is

An edition of a competition that has the same files as another one has no datasets of its own. Its `current.json` names
the other edition, so that both have the same dataset also after that is replaced.

A reader finds the dataset once and then uses only its folder, so a dataset that becomes current meanwhile does not
matter to it. `current.json` is replaced as a whole, by the holder of the lease for preparing, after the dataset has
been committed.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from common.errors import UserError
from competitions.editions import EDITIONS, Edition
from storage.dataset import Dataset
from storage.datasets.commit import MARKER
from storage.datasets.job import ADOPTED, Recipe
from storage.store import Store

CURRENT = "current.json"
USES = ".uses"
"""Suffix of the folder with the uses of a dataset, next to its own folder."""

State = Literal["same", "other code", "other inputs", "missing"]
"""The current dataset, compared with a recipe: it is made by it, or from the same download and parameters by other
code, or from another download or other parameters; or there is no dataset."""


@dataclass(frozen=True)
class Current:
    """The current dataset of a competition, None if there is no complete one, and known recipes with their key."""

    dataset: Dataset | None
    recipes: tuple[tuple[Recipe, str], ...] = ()

    def key_of(self, recipe: Recipe) -> str:
        """The key of the dataset that a recipe makes: its own, or that of a dataset that it was proven to make."""
        return next((key for known_recipe, key in self.recipes if known_recipe == recipe), recipe.key)

    def own_recipes(self, key: str | None) -> list[Recipe]:
        """The recipes that are known to make the dataset with that key."""
        return [recipe for recipe, recipe_key in self.recipes if recipe_key == key]

    def state(self, recipe: Recipe) -> State:
        """How the current dataset compares with what `recipe` makes."""
        if self.dataset is None:
            return "missing"
        if self.key_of(recipe) == self.dataset.key:
            return "same"
        own_recipes = self.own_recipes(self.dataset.key)
        # The files of another edition are those of this one only as long as the recipe says so.
        editions = recipe.edition, self.dataset.edition
        comparable = [own_recipe for own_recipe in own_recipes if own_recipe.edition in editions]
        return "other code" if not own_recipes or any(map(recipe.same_inputs, comparable)) else "other inputs"

    @property
    def adopted(self) -> bool:
        """Whether the current dataset was prepared by the published benchmark."""
        return self.made_by(ADOPTED)

    def made_by(self, code: str) -> bool:
        """Whether code with this fingerprint makes the current dataset, from whatever download it was made."""
        return self.dataset is not None and any(recipe.code == code for recipe in self.own_recipes(self.dataset.key))


def read_current(store: Store, dataset: Dataset) -> Current:
    """The current dataset of the competition and edition that `dataset` names; its key does not matter."""
    record: dict[str, Any] | None = store.read_json(current_url(store, dataset))
    if record is None:
        return Current(None)
    if record.get("files_of"):
        shared = read_current(store, Dataset(record["files_of"], dataset.competition_id))
        return replace(shared, dataset=shared.dataset and _as(dataset.edition, shared.dataset))
    recipes = tuple(
        (Recipe(dataset.edition, entry["download"], entry["code"], entry["params"]), str(entry["dataset"]))
        for entry in record["recipes"]
    )
    named = Dataset(dataset.edition, dataset.competition_id, record["key"])
    return Current(named if is_committed(store, named) else None, recipes)


def find(store: Store, dataset: Dataset) -> Dataset | None:
    """The committed dataset with the key of `dataset`, or without one the current dataset; None if there is none.

    A dataset in the folder of another edition is found too, because keys depend on the edition of the files.
    """
    if dataset.key is None:
        return read_current(store, dataset).dataset
    for edition in (dataset.edition, *(other for other in EDITIONS if other != dataset.edition)):
        candidate = Dataset(edition, dataset.competition_id, dataset.key)
        if is_committed(store, candidate):
            return _as(dataset.edition, candidate)
    return None


def require(store: Store, dataset: Dataset) -> Dataset:
    """Like `find`, but raises `UserError` if there is no such dataset."""
    committed = find(store, dataset)
    if committed is None:
        if dataset.key:
            raise UserError(f"the store {store.root} does not have the dataset {dataset.key} of {dataset}")
        raise not_prepared(store, dataset)
    return committed


def not_prepared(store: Store, dataset: Dataset) -> UserError:
    """The error about a dataset that does not exist, with the command that prepares it."""
    edition = "" if dataset.edition == "v1" else f" --edition {dataset.edition}"
    where = shlex.quote(store.shown(store.root))
    command = f"mlebench prepare -c {dataset.competition_id}{edition} --store {where}"
    return UserError(f"{dataset} is not prepared in {store.root}; run: {command}")


def make_current(store: Store, dataset: Dataset, recipe: Recipe | None = None) -> None:
    """Make a committed dataset the current one, and note that `recipe` makes it. Hold the lease for preparing it."""
    current = read_current(store, dataset)
    shared = keys_of_shared(store, dataset)
    if current.dataset and current.dataset.files_of:  # the recipes of these files are recorded in the other edition
        current = Current(None)
    recipes = [(known_recipe, key) for known_recipe, key in current.recipes if known_recipe != recipe]
    if recipe is not None:
        recipes.append((recipe, str(dataset.key)))
    if current.dataset == dataset and recipes == list(current.recipes) and recipe is not None:
        return
    write_current(store, Current(dataset, tuple(recipes)), dataset, shared)


def share(store: Store, dataset: Dataset, edition: Edition) -> None:
    """Record that the edition that `dataset` names has the files of another edition; its own datasets are old then.

    Hold the lease for preparing `dataset`.
    """
    record: dict[str, Any] = {"files_of": edition, "changed_at": datetime.now(UTC).isoformat(timespec="seconds")}
    if shared := keys_of_shared(store, dataset):
        record["shared"] = sorted(shared)
    store.write_json(current_url(store, dataset), record)


def keys_of_shared(store: Store, dataset: Dataset) -> set[str]:
    """Keys of datasets of other editions that were, or are, those of the edition that `dataset` names, as far as known.

    Runs of this edition may have used them, also if the edition has files of its own now.
    """
    record: dict[str, Any] = store.read_json(current_url(store, dataset)) or {}
    keys = set(record.get("shared", ()))
    if record.get("files_of"):
        other_current = read_current(store, Dataset(record["files_of"], dataset.competition_id))
        keys |= {key for _, key in other_current.recipes}
        keys |= {str(other_current.dataset.key)} if other_current.dataset else set()
    return keys


def sharing(store: Store, dataset: Dataset) -> list[Edition]:
    """The other editions whose files are those of the current dataset of the edition that `dataset` names."""
    other_editions = [other for other in EDITIONS if other != dataset.edition]
    records = {
        other: store.read_json(current_url(store, Dataset(other, dataset.competition_id))) for other in other_editions
    }
    return [other for other, record in records.items() if record and record.get("files_of") == dataset.edition]


def current_url(store: Store, dataset: Dataset) -> str:
    """URL of the file that names the current dataset of the edition that `dataset` names."""
    return f"{store.datasets(Dataset(dataset.edition, dataset.competition_id))}/{CURRENT}"


def write_current(store: Store, current: Current, of: Dataset, shared: Iterable[str] = ()) -> None:
    """Write `current.json` of the competition and edition that `of` names; see `keys_of_shared` for `shared`."""
    record: dict[str, Any] = {
        "key": current.dataset.key if current.dataset else None,
        "changed_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "recipes": [{"dataset": key, **recipe.to_json()} for recipe, key in current.recipes],
    }
    if keys := sorted(shared):
        record["shared"] = keys
    store.write_json(current_url(store, of), record)


def read_marker(store: Store, dataset: Dataset) -> dict[str, Any] | None:
    """The commit marker in the folder of a dataset; None if it is not committed."""
    marker: dict[str, Any] | None = store.read_json(f"{store.prepared(dataset)}/{MARKER}")
    return marker


def is_committed(store: Store, dataset: Dataset) -> bool:
    """Whether the folder of a dataset has its commit marker."""
    if dataset.key is None:
        return False
    marker = read_marker(store, dataset)
    return marker is not None and marker["key"] == dataset.key


def all_datasets(store: Store, edition: Edition, competition_id: str) -> Iterator[Dataset]:
    """Every dataset of a competition in an edition, committed or not."""
    for name in store.folder_names(store.relative(store.datasets(Dataset(edition, competition_id)))):
        if not name.endswith(USES):
            yield Dataset(edition, competition_id, name)


def competitions_of(store: Store) -> Iterator[tuple[Edition, str]]:
    """Edition and id of every competition with a folder below `prepared/`."""
    for edition in EDITIONS:
        for name in store.folder_names(f"prepared/{edition}"):
            yield edition, name


def _as(edition: Edition, dataset: Dataset) -> Dataset:
    """The dataset as one of another edition with the same files."""
    return dataset if dataset.edition == edition else replace(dataset, edition=edition, files_of=dataset.home)
