"""Datasets of a local store in the layout of the published benchmark, which other programs read.

    <root>/<id>/prepared -> ../prepared/v1/<id>/<key>        with public/ and private/

A link for each competition leads to its current dataset of edition v1.
"""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

from common.errors import UserError
from competitions.editions import Edition
from storage.dataset import Dataset
from storage.datasets.current import find
from storage.store import Store

EDITION: Edition = "v1"


def link_published_layout(store: Store, competition_id: str) -> Path | None:
    """Let `<root>/<id>/prepared` lead to the current dataset of edition v1; returns this path.

    A folder that is there already gets the files it lacks: programs make empty ones, and mount them into containers
    before they have a competition prepared. None if there is no such dataset, or if the store is not a local directory.
    Raises `UserError` if the folder has other files.
    """
    dataset = find(store, Dataset(EDITION, competition_id))
    if dataset is None or (folder := store.local(store.relative(store.prepared(dataset)))) is None:
        return None
    link = store.local(competition_id, "prepared")
    assert link is not None
    if link.exists() and not link.is_symlink():
        _fill(link, folder, store)
        return link
    link.parent.mkdir(parents=True, exist_ok=True)
    target = os.path.relpath(folder, link.parent)
    if not link.is_symlink() or os.readlink(link) != target:  # noqa: PTH115
        beside = link.with_name(f".prepared-{secrets.token_hex(4)}")
        beside.symlink_to(target)
        beside.replace(link)  # readers find the old dataset or the new one
    return link


def _fill(target: Path, folder: Path, store: Store) -> None:
    """Link the files of a dataset into a folder that may have some of them."""
    present, wanted = _sizes(target), _sizes(folder)
    if not present.items() <= wanted.items():
        raise UserError(
            f"{target} is a folder with other files than the dataset of the store {store.root}; move it away, or have "
            "the store adopt it with `mlebench adopt`"
        )
    for name in wanted.keys() - present.keys():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        try:
            (target / name).hardlink_to(folder / name)
        except OSError:  # the file system has no hard links
            shutil.copyfile(folder / name, target / name)


def _sizes(folder: Path) -> dict[str, int]:
    """The size of each file of both parts of a dataset, by its path."""
    paths = [path for part in ("public", "private") for path in (folder / part).rglob("*")]
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in paths if path.is_file()}
