"""Datasets of a local store in the layout of the published benchmark, which other programs read.

    <root>/<id>/prepared -> ../prepared/v1/<id>/<key>        with public/ and private/

A link for each competition leads to its current dataset of edition v1.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from common.errors import UserError
from competitions.editions import Edition
from storage.dataset import Dataset
from storage.datasets.current import find
from storage.store import Store

EDITION: Edition = "v1"


def link_published_layout(store: Store, competition_id: str) -> Path | None:
    """Let `<root>/<id>/prepared` lead to the current dataset of edition v1; returns the link.

    None if there is no such dataset, or if the store is not a local directory. Raises `UserError` if a folder that is
    no link of ours is in the way.
    """
    dataset = find(store, Dataset(EDITION, competition_id))
    if dataset is None or (folder := store.local(store.relative(store.prepared(dataset)))) is None:
        return None
    link = store.local(competition_id, "prepared")
    assert link is not None
    if link.exists() and not link.is_symlink():
        if any(link.iterdir()):
            raise UserError(
                f"{link} is a folder, not a link to a dataset of the store {store.root}; move it away, or have the "
                "store adopt it with `mlebench adopt`"
            )
        link.rmdir()
    link.parent.mkdir(parents=True, exist_ok=True)
    target = os.path.relpath(folder, link.parent)
    if not link.is_symlink() or os.readlink(link) != target:  # noqa: PTH115
        beside = link.with_name(f".prepared-{secrets.token_hex(4)}")
        beside.symlink_to(target)
        beside.replace(link)  # readers find the old dataset or the new one
    return link
