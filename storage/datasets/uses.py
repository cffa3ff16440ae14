"""Uses of prepared datasets by agents and graders, so that garbage collection leaves them alone.

They are recorded in local stores, in `prepared/<edition>/<id>/<key>.uses/`; see `storage.uses`. From other stores,
agents and graders get local copies, whose uses the cache records.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

from storage.dataset import Dataset
from storage.datasets.current import USES, require
from storage.store import Store
from storage.uses import Continuing, in_use
from storage.uses import use as use_folder


@contextlib.contextmanager
def use(store: Store, dataset: Dataset, continuing: Continuing | None = None) -> Iterator[Dataset]:
    """Find a dataset and keep it from being removed for the block. Yields it with its key.

    In a store that cannot be written, nothing is recorded: the readers of such a store do not remove anything either.

    Args:
        store: store of the dataset.
        dataset: the dataset; without a key the current one.
        continuing: a run that uses the dataset even if this process is killed.

    Raises:
        UserError: there is no such dataset.
    """
    found = require(store, dataset)
    folder = uses_folder(store, found)
    with contextlib.ExitStack() as recorded:
        if folder is not None:
            try:
                recorded.enter_context(use_folder(folder, continuing))
            except OSError as error:
                if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
                    raise
        # Whoever removes a dataset removes its marker first and looks for uses once more: one of both is seen.
        yield require(store, found)


def is_used(store: Store, dataset: Dataset) -> bool:
    """Whether anybody uses a dataset of a local store at this moment."""
    folder = uses_folder(store, dataset)
    return folder is not None and in_use(folder, shared=True)


def uses_folder(store: Store, dataset: Dataset) -> Path | None:
    """The folder with the uses of a dataset; None if the store is not on a local file system."""
    return store.local(store.relative(f"{store.datasets(dataset)}/{dataset.key}{USES}"))
