"""Step 2: split the data into a new train and test set, and write the prepared dataset, on Dask unless it is small."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from common import progress
from common.settings import get_settings
from competitions import registry
from competitions.editions import EDITIONS, Edition
from competitions.variant import Variant
from storage.dataset import Dataset
from storage.datasets.current import find, make_current, read_current, share
from storage.datasets.executors import Executor, Serial
from storage.datasets.job import Job, Recipe, recipe_of
from storage.datasets.materialise import Progress, materialise
from storage.datasets.reuse import difference
from storage.datasets.uses import use
from storage.lease import lease, prepare_lease
from storage.sources.acquire import has_download, recorded_md5
from storage.sources.archive_references import release_archive
from storage.store import Store
from tasks.variants import derive_variant
from tasks.wiring.context import open_store
from tasks.wiring.host import slot

logger = logging.getLogger(__name__)


def split_recipe(competition_id: str, download_hash: str, edition: Edition) -> Recipe:
    """The recipe by which `split` makes the dataset of a download."""
    params = get_settings().params_of(competition_id)
    return recipe_of(registry.get(competition_id), download_hash, edition, params)


def _code(competition_id: str) -> str:
    """The fingerprint of the code that workers must have imported."""
    return registry.get(competition_id).fingerprint("prepare")


def split_dataset(
    competition_id: str,
    store_url: str,
    edition: Edition,
    download_hash: str,
    executor: Executor | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
    tell: Callable[[str], None] = logger.info,
) -> str:
    """Make the dataset of a download the current one, and prepare it unless the store has it; returns its key.

    A dataset that other code made from the same download is kept if the current code declares the same files, which is
    found out without writing anything; and also if the store no longer has the download.

    An edition with the files of another one shares its dataset. A variant is derived from the prepared dataset of its
    competition.

    Without an executor, the work is done in this process.
    """
    store, dataset = open_store(store_url), Dataset(edition, competition_id)
    if isinstance(registry.get(competition_id), Variant):
        return str(derive_variant(competition_id, store_url, edition, renew=True, on_progress=on_progress).key)
    if (files_of := registry.get(competition_id).files_of(edition)) != edition:
        return _shared(store, dataset, files_of, download_hash, executor, on_progress, tell)
    recipe = split_recipe(competition_id, download_hash, edition)
    executor = executor or Serial()

    def waiting(reason: str) -> None:
        progress.report(competition_id, "waiting", reason)

    def show(made: Progress) -> None:
        files = f"{made.files} of {made.files_total} files"
        progress.report(competition_id, "split", files, made.bytes, made.bytes_total)
        on_progress(made)

    with (
        slot("preparations", get_settings().preparations),
        lease(store, prepare_lease(dataset), on_wait=waiting) as held_lease,
    ):
        assert held_lease is not None
        current = read_current(store, dataset)
        state = current.state(recipe)
        if current.dataset is not None and state == "same":
            release_archive(store, dataset)
            return str(current.dataset.key)
        target = Dataset(edition, competition_id, current.key_of(recipe))
        job = _job(store, target, recipe)
        existing = find(store, target)
        if current.dataset is not None and state == "other code" and existing is None:
            if not has_download(store, registry.get(competition_id), download_hash):
                tell(f"{dataset}: made by other code and used as it is, because the store does not have its download")
                release_archive(store, dataset)
                return str(current.dataset.key)
            progress.report(competition_id, "split", "comparing the dataset with what the current code makes")
            change = next(iter(executor.map(difference, [job], store.prepared(current.dataset))))
            if change is None:
                held_lease.require_held()
                make_current(store, current.dataset, recipe)
                tell(f"{dataset}: the current code makes the same files; the dataset is kept")
                progress.report(competition_id, "split", "unchanged by the current code; kept")
                release_archive(store, dataset)
                return str(current.dataset.key)
            tell(f"{dataset}: the current code makes other files ({change}); prepared under a new key")
        if existing is None:
            progress.report(competition_id, "split", "planning")
            with _similar(store, dataset, recipe) as (like, like_edition):
                job = replace(job, like=like, like_edition=like_edition)
                materialise(job, executor=executor, on_progress=show, before_commit=held_lease.require_held)
        held_lease.require_held()
        make_current(store, existing or target, recipe)
        release_archive(store, dataset)
    return str(target.key)


def _job(store: Store, target: Dataset, recipe: Recipe) -> Job:
    md5 = registry.get(target.competition_id).facts.checksums.download
    return Job(
        target.competition_id,
        raw=store.raw(target.competition_id),
        out=store.prepared(target),
        edition=target.edition,
        params=get_settings().params_of(target.competition_id),
        key=str(target.key),
        recipe=recipe,
        code=_code(target.competition_id),
        published=md5 is not None and recorded_md5(store, target.competition_id) == md5,
    )


@contextlib.contextmanager
def _similar(store: Store, dataset: Dataset, recipe: Recipe) -> Iterator[tuple[str | None, Edition | None]]:
    """Yield the URL of a current dataset of the same download in any edition, which is kept for the block; or None.

    Also yields its edition, if the same code with the same parameters makes it.
    """
    for edition in (dataset.edition, *EDITIONS):
        current = read_current(store, Dataset(edition, dataset.competition_id))
        recipes = current.own_recipes(current.dataset.key) if current.dataset else []
        if current.dataset and any(earlier.download == recipe.download for earlier in recipes):
            has_same_inputs = any(recipe.same_inputs(earlier) and earlier.code == recipe.code for earlier in recipes)
            with use(store, current.dataset) as in_use:
                yield store.prepared(in_use), in_use.home if has_same_inputs else None
            return
    yield None, None


def _shared(store: Store, dataset: Dataset, files_of: Edition, download_hash: str, *options: Any) -> str:
    """Prepare the edition whose files are those of the edition that `dataset` names, and note that they are shared."""
    current = read_current(store, dataset)
    key = split_dataset(dataset.competition_id, store.root, files_of, download_hash, *options)
    with lease(store, prepare_lease(dataset)) as held_lease:
        assert held_lease is not None
        if not (current.dataset and current.dataset.files_of):
            share(store, dataset, files_of)
        release_archive(store, dataset)
    return key
