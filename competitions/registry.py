"""The catalog: look up competitions by id and by complexity split."""

from __future__ import annotations

import builtins
import logging
import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import get_args

from common.errors import UsageError, UserError, close_matches
from common.splits import OwnSplit, RecordedSplit
from common.units import counted
from competitions.competition import Competition
from competitions.errors import BadCompetition, UnknownCompetition, UnknownSplit
from competitions.facts import Complexity
from competitions.marks import marked_places
from competitions.published_format import PublishedCompetition
from competitions.variant import Variant, VariantName

CATALOG = Path(__file__).parent / "catalog"
SPLITS = ("low", "lite", "medium", "high", "all", "dev", "demo", "systemcard")
RESERVED = frozenset({*SPLITS, *get_args(Complexity)})
"""Names that a split of one's own cannot have."""
_FACTS = ("config.yaml", "leaderboard.csv", "checksums.yaml")
_BENCHMARK = ("low", "medium", "high")
_SPLIT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_COMPLEXITY = re.compile(r"^complexity: *(\w+)\s", re.MULTILINE)


# Global, because an id and a split must mean the same in every module of a process.
_further: tuple[Path, ...] = ()
_own_splits: dict[str, OwnSplit] = {}


def extend(directories: Iterable[str | Path]) -> None:
    """Add the competition folders in `directories` to the catalog, replacing those that an earlier call added.

    A directory that does not exist causes a warning at the next lookup.
    """
    global _further
    _further = tuple(Path(directory).expanduser() for directory in directories)


def define(splits: Mapping[str, OwnSplit]) -> None:
    """Make splits of one's own known, replacing those of an earlier call. Raises `UserError` for a name that is taken.

    Their competitions are looked up when the split is listed.
    """
    global _own_splits
    for name in splits:
        if name in RESERVED:
            raise UserError(f"setting splits: {name!r} is a split of the benchmark; give yours another name")
        if not _SPLIT_NAME.fullmatch(name):
            raise UserError(f"setting splits: {name!r} is no name; use letters, digits, '.', '_', '-', as in fresh-1")
    _own_splits = dict(splits)


def split_names() -> builtins.list[str]:
    """The names of all splits: those of the benchmark, then those of one's own."""
    return [*SPLITS, *_own_splits]


def own_splits() -> dict[str, RecordedSplit]:
    """The present version of each split of one's own."""
    return {name: split.recorded(name) for name, split in _own_splits.items()}


def recorded_split(split: str | None, ids: Iterable[str]) -> RecordedSplit | None:
    """What runs on `ids` record of `split`; None unless it is one of one's own that has all of these."""
    own = own_splits().get(split or "")
    return own if own and set(ids) <= set(list(split)) else None


def folders() -> dict[str, Path]:
    """The folder of every competition by id: first those of the catalog, then those added by `extend`.

    A directory that does not exist, or the second folder of an id, is skipped with a warning; `get` refuses such an id.
    """
    return _found()[0]


def _found() -> tuple[dict[str, Path], dict[str, Path]]:
    """The folder of every competition by id, and the second folders of ids that occur twice."""
    by_id = {path.name: path for path in sorted(CATALOG.iterdir()) if _is_one(path)}
    second_folders: dict[str, Path] = {}
    for directory in _further:
        if not directory.is_dir():
            _warn(f"MLEBENCH_COMPETITIONS names {directory}, which is not a directory")
            continue
        copies = 0
        for path in sorted(directory.iterdir()):
            if not _is_one(path) or by_id.setdefault(path.name, path) == path:
                continue
            if by_id[path.name].parent == CATALOG and not (path / "competition.yaml").is_file():
                copies += 1  # of a clone of the published benchmark, which has all of its competitions
                continue
            second_folders[path.name] = path
            _warn(_exists_twice(path.name, by_id[path.name], path))
        if copies:
            _warn(f"{directory}: the catalog's own are used instead of {counted(copies, 'published folder')} there")
    return by_id, second_folders


_MAX_ID_CHARACTERS = 200
"""An id is cut to as many characters. No folder has a longer name."""


def _is_one(folder: Path) -> bool:
    """Whether this is a competition's folder, in our format or in the published one."""
    if (folder / "competition.yaml").is_file():
        return True
    # Other programs have a config.yaml in their folders, too.
    return (folder / "config.yaml").is_file() and any((folder / name).is_file() for name in ("grade.py", "prepare.py"))


def _exists_twice(name: str, first: Path, second: Path) -> str:
    return f"competition {name!r} exists twice: {first} and {second}. Rename one of them"


@cache  # each warning appears once in a process, because competitions are looked up often
def _warn(text: str) -> None:
    logging.getLogger("mlebench.registry").warning("%s", text)


def load(folder: Path) -> Competition:
    """The competition in a folder, in our format or in the published one. Raises `BadCompetition`."""
    if (folder / "config.yaml").is_file() and not (folder / "competition.yaml").is_file():
        return PublishedCompetition.load(folder)
    return Competition.load(folder)


@lru_cache(maxsize=256)
def _loaded(folder: Path, _files: object) -> Competition:
    return load(folder)


def _load(folder: Path) -> Competition:
    """The competition in a folder. One in the published format is read again after a change of what its facts are."""
    files = [folder / name for name in _FACTS] if folder.parent != CATALOG else []
    return _loaded(folder, tuple(path.stat().st_mtime_ns if path.is_file() else 0 for path in files))


def reread() -> None:
    """Read the competitions' folders again, after a file in one was changed by this process."""
    _loaded.cache_clear()


def get(competition_id: str) -> Competition:
    """The competition with that id, or the variant of one (`competitions.variant`).

    Raises `UnknownCompetition`, naming close matches, and `UserError` for an id that occurs twice, because grading
    another competition under a known id would go unnoticed.
    """
    competition_id = competition_id[:_MAX_ID_CHARACTERS]
    if not _further and Path(competition_id).name == competition_id and _is_one(CATALOG / competition_id):
        return _load(CATALOG / competition_id)  # without listing all folders
    by_id, second_folders = _found()
    if competition_id not in by_id and (variant := VariantName.of(competition_id)) is not None:
        return Variant.make(get(variant.parent_id), variant)
    if competition_id in second_folders:
        raise UserError(_exists_twice(competition_id, by_id[competition_id], second_folders[competition_id]))
    if competition_id not in by_id:
        hint = close_matches(competition_id, by_id) or " `mlebench list` shows all."
        parent, dashes, _ = competition_id.partition("--")
        if dashes and parent in by_id:
            hint = f" Variants are named {parent}--rowsN-seedK, such as {parent}--rows50-seed0."
        raise UnknownCompetition(f"unknown competition {competition_id!r}.{hint}")
    return _load(by_id[competition_id])


def in_catalog(competition_id: str) -> bool:
    """Whether a known competition, or that of a variant, is the catalog's, and not one of the user's own."""
    return get(competition_id).folder.parent == CATALOG


def open_marks(competition_id: str) -> builtins.list[str]:
    """The places of a competition of the user's own that are marked with CHECK. The catalog has none."""
    return [] if in_catalog(competition_id) else marked_places(get(competition_id).folder)


def is_variant(competition_id: str) -> bool:
    """Whether this is the id of a variant of a known competition."""
    name = VariantName.of(competition_id)
    return name is not None and name.parent_id in folders()


def list(split: str | None = None) -> builtins.list[str]:
    """Sorted ids, all or those of `split`: low (= lite), medium, high, all (these three), ..., or one of one's own.

    Raises `UnknownSplit`, and `UnknownCompetition` if a split of one's own names one that is not there.
    """
    if split is None:
        return sorted(folders())
    if split in _own_splits:
        try:
            return sorted({get(name).id for name in _own_splits[split].competitions})
        except UnknownCompetition as error:
            raise UnknownCompetition(f"split {split!r} of the settings: {error}") from error
    if split not in SPLITS:
        hint = close_matches(split, split_names())
        raise UnknownSplit(f"unknown split {split!r}; splits are {', '.join(split_names())}.{hint}")
    complexities = {"lite": ("low",), "all": _BENCHMARK}.get(split, (split,))
    ids = []
    for name, folder in folders().items():
        if folder.parent == CATALOG and not _of(folder, complexities, split):
            continue
        try:
            facts = _load(folder).facts
        except BadCompetition as error:  # its split is unknown; the other competitions are still listed
            _warn(f"{folder} is ignored, because {error}")
            continue
        if facts.complexity in complexities or split in facts.splits:
            ids.append(name)
    return sorted(ids)


def _of(folder: Path, complexities: tuple[str, ...], split: str) -> bool:
    """Whether a competition of the catalog may belong to a split, by a quick search: parsing all facts takes longer."""
    text = (folder / "competition.yaml").read_text("utf-8")
    complexity = _COMPLEXITY.search(text)
    return complexity is None or complexity[1] in complexities or split in text


def select(ids: Iterable[str] = (), split: str | None = None) -> builtins.list[str]:
    """Sorted ids, selected by name and by split, without duplicates. Raises `UsageError` if none are selected."""
    chosen = {get(name).id for name in ids}
    if split is not None:
        chosen |= set(list(split))
    if not chosen:
        raise UsageError("nothing selected: name competitions with -c ID, or a split with --split, --lite or --all")
    return sorted(chosen)
