"""Commands that messages advise, with the options that the user needs to repeat."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from storage.dataset import Dataset
from storage.store import Store, root_url


def advised(command: str, store: Store | str) -> str:
    """A command line that works in this store: with `--store` unless the settings name the store.

    >>> advised("mlebench ls", "/another/place")
    'mlebench ls --store /another/place'
    """
    from common.locations import local_path
    from common.settings import get_settings

    root = root_url(store if isinstance(store, str) else store.root)
    if root == root_url(get_settings().store):
        return command
    return f"{command} --store {shlex.quote(str(local_path(root) or root))}"


def renewing(datasets: Sequence[Dataset], store: Store) -> str:
    """A command that renews datasets that were made by other code: the first ones, of one edition."""
    edition = datasets[0].edition
    names = [f"-c {dataset.competition_id}" for dataset in datasets if dataset.edition == edition][:5]
    option = "" if edition == "v1" else f" --edition {edition}"
    return advised(f"mlebench prepare {' '.join(names)}{option} --renew", store)
