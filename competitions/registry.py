"""The catalog: competitions by id and by split."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from common.errors import UserError, close_matches
from competitions.competition import Competition
from competitions.errors import UnknownCompetition, UnknownSplit

CATALOG = Path(__file__).parent / "catalog"
SPLITS = ("low", "lite", "medium", "high", "all", "dev", "demo", "systemcard")
_BENCHMARK = ("low", "medium", "high")


_further: tuple[Path, ...] = ()  # global: competitions are looked up by id wherever an id arrives


def extend(directories: Iterable[Path]) -> None:
    """Have this process know the competitions in further directories too, in place of those of an earlier call."""
    global _further
    _further = tuple(Path(each).expanduser() for each in directories)


def folders() -> dict[str, Path]:
    """Every competition's folder by id: the catalog's, then those in the directories given to `extend`.

    An id that the catalog already has is an error: silently grading something else under a known name would be worse
    than stopping.
    """
    found = {path.name: path for path in sorted(CATALOG.iterdir()) if (path / "competition.yaml").is_file()}
    for root in _further:
        if not root.is_dir():
            raise UserError(f"MLEBENCH_COMPETITIONS names {root}, which is no directory")
        for path in sorted(root.iterdir()):
            if (path / "competition.yaml").is_file() and found.setdefault(path.name, path) != path:
                raise UserError(f"competition {path.name!r} exists twice: {found[path.name]} and {path}")
    return found


@lru_cache(maxsize=256)
def _load(folder: Path) -> Competition:
    return Competition.load(folder)


def get(competition_id: str) -> Competition:
    """The competition of that id. Raises `UnknownCompetition`, naming close matches."""
    known = folders()
    if competition_id not in known:
        hint = close_matches(competition_id, known) or " `mlebench list` shows all."
        raise UnknownCompetition(f"unknown competition {competition_id!r}.{hint}")
    return _load(known[competition_id])


def list(split: str | None = None) -> builtins.list[str]:
    """Ids, sorted: of `split` (low = lite, medium, high, all = these three, dev, demo, systemcard), or every one."""
    if split is None:
        return sorted(folders())
    if split not in SPLITS:
        hint = close_matches(split, SPLITS)
        raise UnknownSplit(f"unknown split {split!r}; splits are {', '.join(SPLITS)}.{hint}")
    wanted = {"lite": ("low",), "all": _BENCHMARK}.get(split, (split,))
    return sorted(
        name
        for name, folder in folders().items()
        for facts in [_load(folder).facts]
        if facts.complexity in wanted or split in facts.splits
    )


def select(ids: Iterable[str] = (), split: str | None = None) -> builtins.list[str]:
    """Ids named one by one and by split, each once, sorted. Raises for unknown names and for an empty selection."""
    chosen = {get(name).id for name in ids}
    if split is not None:
        chosen |= set(list(split))
    if not chosen:
        raise UserError("nothing selected: name competitions with -c ID, or a split with --split, --lite or --all")
    return sorted(chosen)
