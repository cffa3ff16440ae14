"""The catalog: look up competitions by id and by complexity split."""

from __future__ import annotations

import builtins
import logging
import re
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path

from common.errors import UserError, close_matches
from competitions.competition import Competition
from competitions.errors import BadCompetition, UnknownCompetition, UnknownSplit

CATALOG = Path(__file__).parent / "catalog"
SPLITS = ("low", "lite", "medium", "high", "all", "dev", "demo", "systemcard")
_BENCHMARK = ("low", "medium", "high")
_COMPLEXITY = re.compile(r"^complexity: *(\w+)\s", re.MULTILINE)


# Global, because an id must mean the same competition in every module of a process.
_further: tuple[Path, ...] = ()


def extend(directories: Iterable[str | Path]) -> None:
    """Add the competition folders in `directories` to the catalog, replacing those that an earlier call added.

    A directory that does not exist causes a warning at the next lookup.
    """
    global _further
    _further = tuple(Path(directory).expanduser() for directory in directories)


def folders() -> dict[str, Path]:
    """The folder of every competition by id: first those of the catalog, then those added by `extend`.

    A directory that does not exist is passed over with a warning. So is the second folder of an id; `get` refuses both.
    """
    return _found()[0]


def _found() -> tuple[dict[str, Path], dict[str, Path]]:
    """The folder of every competition by id, and the second folders of ids that occur twice."""
    found = {path.name: path for path in sorted(CATALOG.iterdir()) if _is_one(path)}
    twice: dict[str, Path] = {}
    for directory in _further:
        if not directory.is_dir():
            _warn(f"MLEBENCH_COMPETITIONS names {directory}, which is not a directory")
            continue
        for path in sorted(directory.iterdir()):
            if _is_one(path) and found.setdefault(path.name, path) != path:
                twice[path.name] = path
                _warn(_exists_twice(path.name, found[path.name], path))
    return found, twice


_LONGEST = 200
"""Characters of an id that are looked at: nobody's folder has a longer name."""


def _is_one(folder: Path) -> bool:
    return (folder / "competition.yaml").is_file()


def _exists_twice(name: str, first: Path, second: Path) -> str:
    return f"competition {name!r} exists twice: {first} and {second}. Rename one of them"


@cache  # once a process: competitions are looked up often
def _warn(text: str) -> None:
    logging.getLogger("mlebench.registry").warning("%s", text)


@lru_cache(maxsize=256)
def _load(folder: Path) -> Competition:
    return Competition.load(folder)


def reread() -> None:
    """Read the competitions' folders again, after a file in one was changed by this process."""
    _load.cache_clear()


def get(competition_id: str) -> Competition:
    """The competition with that id.

    Raises `UnknownCompetition`, naming close matches, and `UserError` for an id that occurs twice, because grading
    another competition under a known id would go unnoticed.
    """
    competition_id = competition_id[:_LONGEST]
    if not _further and Path(competition_id).name == competition_id and _is_one(CATALOG / competition_id):
        return _load(CATALOG / competition_id)  # without a look at all others
    known, twice = _found()
    if competition_id in twice:
        raise UserError(_exists_twice(competition_id, known[competition_id], twice[competition_id]))
    if competition_id not in known:
        hint = close_matches(competition_id, known) or " `mlebench list` shows all."
        raise UnknownCompetition(f"unknown competition {competition_id!r}.{hint}")
    return _load(known[competition_id])


def list(split: str | None = None) -> builtins.list[str]:
    """Sorted ids, all or those of `split`: low (= lite), medium, high, all (these three), dev, demo, systemcard."""
    if split is None:
        return sorted(folders())
    if split not in SPLITS:
        hint = close_matches(split, SPLITS)
        raise UnknownSplit(f"unknown split {split!r}; splits are {', '.join(SPLITS)}.{hint}")
    wanted = {"lite": ("low",), "all": _BENCHMARK}.get(split, (split,))
    found = []
    for name, folder in folders().items():
        if folder.parent == CATALOG and not _of(folder, wanted, split):
            continue
        try:
            facts = _load(folder).facts
        except BadCompetition as error:  # of no split that is known, and no reason to refuse the others
            logging.getLogger("mlebench.registry").warning("left out of split %s: %s", split, error)
            continue
        if facts.complexity in wanted or split in facts.splits:
            found.append(name)
    return sorted(found)


def _of(folder: Path, wanted: tuple[str, ...], split: str) -> bool:
    """Whether a competition of the catalog may belong to a split, at a glance: parsing all facts takes longer."""
    text = (folder / "competition.yaml").read_text("utf-8")
    found = _COMPLEXITY.search(text)
    return found is None or found[1] in wanted or split in text


def select(ids: Iterable[str] = (), split: str | None = None) -> builtins.list[str]:
    """Sorted ids, selected by name and by split, without duplicates. Raises `UserError` if none are selected."""
    chosen = {get(name).id for name in ids}
    if split is not None:
        chosen |= set(list(split))
    if not chosen:
        raise UserError("nothing selected: name competitions with -c ID, or a split with --split, --lite or --all")
    return sorted(chosen)
