"""Prepare datasets in a data directory, see whether they are prepared, and read leaderboards."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlebench._files import stored
from mlebench.registry import Competition, is_local

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)


def download_and_prepare_dataset(
    competition: Competition,
    keep_raw: bool = True,
    overwrite_checksums: bool = False,
    overwrite_leaderboard: bool = False,
    skip_verification: bool = False,
) -> None:
    """Prepare a competition in its data directory; nothing is done if it is prepared there.

    The data directory becomes a store, in which `<id>/prepared` leads to the dataset. The download comes from
    `<id>/raw` or `<id>/<id>.zip` in the data directory, from the directory in MLEBENCH_RAW_DIR, or else from Kaggle. In
    a store that is not local, the dataset is prepared in that store.

    Args:
        competition: the competition.
        keep_raw: keep the download, unpacked in `raw_dir`.
        overwrite_checksums: write the MD5s of the prepared files to `competition.checksums`, and do not compare.
        overwrite_leaderboard: fetch the current leaderboard from Kaggle.
        skip_verification: do not compare download and prepared files with the published MD5s.

    Raises:
        UserError: for example without access to the competition on Kaggle, or if files have other MD5s.
    """
    verify = not (skip_verification or overwrite_checksums)
    if not is_dataset_prepared(competition):
        _prepare(competition, keep_raw, verify)
    if overwrite_checksums:
        _overwrite_checksums(competition)
    ensure_leaderboard_exists(competition, force=overwrite_leaderboard)


def _prepare(competition: Competition, keep_raw: bool, verify: bool) -> None:
    from common.settings import get_settings
    from storage.datasets.published_layout import EDITION, link_published_layout
    from tasks.checksum import discard_unused, verify_checksums
    from tasks.download import download_archive
    from tasks.split import split_dataset
    from tasks.wiring.context import open_store

    name, folder = competition.id, competition.raw_dir.parent
    store = open_store(competition.store or str(folder.parent))
    store.require_usable()
    at_hand = _has_files(competition.raw_dir) or (folder / f"{name}.zip").is_file()
    raw_dir = folder.parent if at_hand else get_settings().raw_dir
    download = download_archive(name, store.root, str(raw_dir) if raw_dir else None, verify, EDITION)
    if keep_raw and is_local(store.root) and not _has_files(competition.raw_dir):
        _unpack(Path(store.top.path(store.relative(store.raw(name)))), competition.raw_dir)
    key = split_dataset(name, store.root, EDITION, download)
    if verify:
        verify_checksums(name, store.root, EDITION, key)
    else:
        discard_unused(name, store.root)
    link_published_layout(store, name)


def download_dataset(competition_id: str, download_dir: Path, quiet: bool = False, force: bool = False) -> Path:
    """Download the archive of a competition from Kaggle; returns the path of the zip. Raises `UserError`.

    An archive that is there is kept, unless `force`. `quiet` has no effect: progress goes to the log.
    """
    from mlebench._catalog import competition as in_catalog
    from storage.sources import source_for

    target = Path(download_dir) / f"{competition_id}.zip"
    if force or not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        source_for(in_catalog(competition_id), None).fetch(in_catalog(competition_id), target.parent, logger.info)
    return target


def is_dataset_prepared(competition: Competition, grading_only: bool = False) -> bool:
    """Whether the dataset is there: the private part with the answers, and without `grading_only` the public part."""
    if competition.store and not is_local(competition.store):  # it is not fetched to find out
        return stored(competition.store, competition.id) is not None
    if not (_has_files(competition.private_dir) and competition.answers.is_file()):
        return False
    return grading_only or (_has_files(competition.public_dir) and competition.sample_submission.is_file())


def create_prepared_dir(competition: Competition) -> None:
    """Create the folders of the prepared dataset, for a `prepare_fn` that is called directly."""
    for folder in (competition.public_dir, competition.private_dir):
        folder.mkdir(parents=True, exist_ok=True)


def get_leaderboard(competition: Competition) -> pd.DataFrame:
    """The leaderboard: a row for each team, best first, with the column `score`.

    The column `source` says whether it was fetched from Kaggle, or is made of the thresholds of competition.yaml, with
    which every score earns the same medals. Raises `ValueError` for a file without scores.
    """
    from mlebench.utils import read_csv

    frame = read_csv(path := competition.leaderboard)
    if "score" not in frame or frame["score"].isna().all():
        raise ValueError(f"{path} has no scores: it needs a column `score` and a row for each team, best first")
    return frame


def ensure_leaderboard_exists(competition: Competition, force: bool = False) -> Path:
    """The file of the leaderboard; with `force`, it is fetched from Kaggle first. Raises `UserError`."""
    if not force:
        return competition.leaderboard
    import pandas as pd

    from mlebench._files import FROM_KAGGLE, beside_the_data, replaced
    from storage.sources.kaggle.leaderboard import fetch_leaderboard

    teams = fetch_leaderboard(competition.id)
    frame = pd.DataFrame({"rank": [team.rank for team in teams], "score": [team.score for team in teams]})
    return replaced(beside_the_data(competition, "leaderboard"), frame.assign(source=FROM_KAGGLE).to_csv(index=False))


def generate_checksums(
    target_dir: Path, exts: Collection[str] | None = None, exclude: Collection[Path] | None = None
) -> dict[str, Any]:
    """The MD5s of the files directly in a folder and, nested, in its folders.

    Args:
        target_dir: the folder.
        exts: suffixes of the files that count; by default tables.
        exclude: files that do not count.
    """
    suffixes = set(exts or (".csv", ".json", ".jsonl", ".parquet", ".bson"))
    checksums: dict[str, Any] = {}
    for path in sorted(Path(target_dir).iterdir()):
        if path.is_dir() and (below := generate_checksums(path, suffixes, exclude)):
            checksums[path.name] = below
        elif path.is_file() and path.suffix in suffixes and path not in set(exclude or ()):
            checksums[path.name] = get_checksum(path)
    return checksums


def get_checksum(path: Path) -> str:
    """The MD5 of a file, in hexadecimal digits. Raises `FileNotFoundError`."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()


def _overwrite_checksums(competition: Competition) -> None:
    import yaml

    from mlebench._files import beside_the_data, replaced

    known = yaml.safe_load(competition.checksums.read_text("utf-8")) or {}
    made = {"public": competition.public_dir, "private": competition.private_dir}
    content = {"zip": known.get("zip"), **{part: generate_checksums(folder) for part, folder in made.items()}}
    replaced(beside_the_data(competition, "checksums"), yaml.safe_dump(content, sort_keys=False))


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack the download; the folder is complete or not there."""
    import shutil

    from mlebench.utils import extract

    draft = folder.with_name(f".{folder.name}")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    extract(archive, draft)
    if folder.is_dir():
        folder.rmdir()
    draft.rename(folder)


def _has_files(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())
