"""Derive the dataset of a variant from the prepared dataset of its competition."""

from __future__ import annotations

from collections.abc import Callable

from common.errors import UserError
from competitions import registry
from competitions.editions import Edition
from competitions.variant import Variant
from storage.dataset import Dataset
from storage.datasets.current import find, make_current, read_current, share
from storage.datasets.job import Job, recipe_of
from storage.datasets.materialise import Progress, materialise
from storage.datasets.uses import use
from storage.lease import lease, prepare_lease
from tasks.wiring.context import open_store


def derive_variant(
    variant_id: str,
    store_url: str,
    edition: Edition = "v1",
    *,
    renew: bool = False,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Dataset:
    """Prepare a variant in the store that has its competition prepared; returns its dataset.

    A variant that is prepared is used as it is, also if its competition was prepared anew, unless `renew`.

    Args:
        variant_id: such as `spaceship-titanic--rows200-seed0`.
        store_url: the store.
        edition: the edition.
        renew: whether to derive it from the current dataset of its competition.
        on_progress: called after each part of the work.

    Raises:
        UserError: the competition is not prepared, or has no variants, or not more units of train.
    """
    store, variant = open_store(store_url), registry.get(variant_id)
    if not isinstance(variant, Variant):
        raise UserError(f"{variant_id} is no variant: variants are named ID--rowsN-seedK")
    dataset = Dataset(edition, variant.id)
    if not renew and (prepared := find(store, dataset)) is not None:
        return prepared
    if (files_of := variant.files_of(edition)) != edition:
        derive_variant(variant_id, store_url, files_of, renew=renew, on_progress=on_progress)
        with lease(store, prepare_lease(dataset)):
            share(store, dataset, files_of)
        return _require(find(store, dataset))
    with use(store, Dataset(edition, variant.parent.id)) as parent, lease(store, prepare_lease(dataset)) as held_lease:
        assert held_lease is not None  # it waits
        recipe = recipe_of(variant, str(parent.key), edition)
        target = Dataset(edition, variant.id, read_current(store, dataset).key_of(recipe))
        if find(store, target) is None:
            job = Job(
                variant.id,
                raw=store.prepared(parent),
                out=store.prepared(target),
                edition=edition,
                key=str(target.key),
                recipe=recipe,
                params={"only_smaller": True},
                published=True,  # every file of the dataset counts
            )
            materialise(job, on_progress=on_progress, before_commit=held_lease.require_held)
        held_lease.require_held()
        make_current(store, target, recipe)
    return _require(find(store, dataset))


def _require(dataset: Dataset | None) -> Dataset:
    assert dataset is not None  # it was made current
    return dataset
