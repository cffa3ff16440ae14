"""The files behind the paths of a `Competition`: fetched from a store, or made of what is known."""

from __future__ import annotations

import atexit
import csv
import ctypes
import os
import secrets
import shutil
import tempfile
from contextlib import ExitStack, suppress
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.errors import UserError
from mlebench._catalog import competition

if TYPE_CHECKING:
    import pandas as pd

    from competitions.competition import Competition as CatalogCompetition
    from mlebench.registry import Competition
    from storage.dataset import Dataset

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "mle-bench"
"""Where data are kept that a user does not name a place for."""
_PARTS = (("prepared", "public"), ("prepared", "private"))
FROM_THRESHOLDS = "thresholds of competition.yaml"
"""The `source` of a leaderboard that is made of the thresholds."""
FROM_KAGGLE = "kaggle"
"""The `source` of a leaderboard that was fetched."""
_GENERATED_CHECKSUMS = "# MD5s of competition.yaml\n"
MADE_OF_FACTS = ("leaderboard", "checksums")
"""Files of a `Competition` that are made of what its competition.yaml says."""


def existing(competition_id: str, store: str | None, name: str, path: Path) -> Path:
    """The path of a file or folder that stands for `path`, which does not exist; `path` if there is none.

    A leaderboard or checksums may exist: they are replaced if they were generated of facts that have changed.
    """
    if name in MADE_OF_FACTS:
        return _made_of_facts(competition_id, name, path)
    if store is None or (dataset := stored(store, competition_id)) is None:
        return path
    places = [place for place, pair in enumerate(pairwise(path.parts)) if pair in _PARTS]
    if not places:
        return path
    relative = path.parts[places[-1] + 1 :]
    return _folder(store, dataset, relative[0]).joinpath(*relative)


def _made_of_facts(competition_id: str, name: str, path: Path) -> Path:
    """The leaderboard or the checksums of a competition: a file that somebody put at `path`, or what the facts say."""
    try:
        ours = competition(competition_id)
    except FileNotFoundError:
        if path.is_file():
            return path
        raise
    place, facts, time_of_place = _current.get(path, (path, None, 0))
    if facts is ours.facts and place.is_file() and place.stat().st_mtime_ns == time_of_place:
        return place
    own = ours.folder / path.name
    own_counts = ours.published_format and own.is_file()
    if path.is_file() and not _is_generated(path, name, own_counts):
        return path
    if own_counts:
        return own
    text = leaderboard_of(ours).to_csv(index=False) if name == "leaderboard" else _checksums_of(ours)
    place = path if path.is_file() and path.read_text("utf-8") == text else _written(path, text)
    _current[path] = (place, ours.facts, place.stat().st_mtime_ns)
    return place


def beside_the_data(subject: Competition, name: str) -> Path:
    """Where to write a leaderboard or checksums: not into the folder with a competition's code."""
    path: Path = getattr(subject, name)
    try:
        own = competition(subject.id).folder
    except FileNotFoundError:
        return path
    return subject.raw_dir.parent / path.name if path.parent == own else path


_current: dict[Path, tuple[Path, Any, int]] = {}
"""Files that this process has compared with the facts, by the path in the data directory: file, facts and its time."""


def _is_generated(path: Path, name: str, own_counts: bool) -> bool:
    """Whether a file was written by us; of a folder with its own leaderboard, any that was not fetched from Kaggle."""
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        if name == "checksums":
            return file.readline() == _GENERATED_CHECKSUMS
        source = next(csv.DictReader(file), {}).get("source")
    return source != FROM_KAGGLE if own_counts else source == FROM_THRESHOLDS


def stored(store: str, competition_id: str) -> Dataset | None:
    """The prepared dataset of edition v1 in a store; None if there is none.

    Raises `UserError` in one line for an error of the store, such as missing credentials.
    """
    from common.causes import cause_of, explain
    from storage.dataset import Dataset
    from storage.datasets.current import find
    from storage.datasets.published_layout import EDITION
    from tasks.wiring.context import open_store

    try:
        return find(open_store(store), Dataset(EDITION, competition_id))
    except UserError:
        raise
    except Exception as error:
        if cause_of(error).kind == "bug":
            raise
        raise UserError(f"{store} cannot be read: {explain(error)}") from error


@cache
def _folder(store: str, dataset: Dataset, part: str) -> Path:
    """The folder of a dataset on this machine, with the files of `part`, until this process ends."""
    from storage.datasets.local_copy import local_copy
    from tasks.wiring.context import local_cache, open_store

    return _copies().enter_context(local_copy(open_store(store), dataset, part, local_cache()))


@cache
def _copies() -> ExitStack:
    copies = ExitStack()
    atexit.register(copies.close)
    return copies


def _forget_copies() -> None:
    """In a process that was forked: the files belong to the process before, which may still read them."""
    if _copies.cache_info().currsize:
        copies = _copies()
        atexit.unregister(copies.close)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(copies))  # it is never freed, which would close it
    for cached in (_copies, _folder, _temporary):
        cached.cache_clear()


os.register_at_fork(after_in_child=_forget_copies)


def leaderboard_of(ours: CatalogCompetition) -> pd.DataFrame:
    """A leaderboard with the thresholds of competition.yaml, and so with the same medals for every score.

    A row for each team, best first. The scores at the places of the medals, of the median, and at each 5 % of the teams
    are the known ones. Between them, teams have the score of the next known place below.

    Returns:
        A frame with the columns `rank`, `score` and `source`.
    """
    import pandas as pd

    from competitions.leaderboard import medal_places

    board = ours.facts.leaderboard
    places = medal_places(board.teams)
    middle = (board.teams + 1) // 2
    exact = {places.gold: board.gold, places.silver: board.silver, places.bronze: board.bronze, middle: board.median}
    exact[board.teams + 1 - middle] = board.median  # the other one of two, among an even number of teams
    known, steps = dict(exact), board.percentiles or []
    for step, score in enumerate(steps):
        place = 1 + round(step / (len(steps) - 1) * (board.teams - 1))
        # It is rounded, so it may be beyond a threshold next to it.
        limits = [exact[max(p for p in exact if p <= place)]] if place >= min(exact) else [score]
        limits += [exact[min(p for p in exact if p >= place)]] if place <= max(exact) else [score]
        known[place] = sorted([score, *limits])[1]
    scores: list[float] = []
    for place in sorted(known):
        scores += [known[place]] * (place - len(scores))
    scores += scores[-1:] * (board.teams - len(scores))
    return pd.DataFrame({"rank": range(1, board.teams + 1), "score": scores, "source": FROM_THRESHOLDS})


def _checksums_of(ours: CatalogCompetition) -> str:
    """The known MD5s as YAML: `zip` of the archive, and by name those of the files in `public` and `private`."""
    import yaml

    known = ours.facts.checksums
    content: dict[str, Any] = {"zip": known.download, "public": {}, "private": {}}
    for path, md5 in known.prepared.items():
        part, _, name = path.partition("/")
        content[part][name] = md5
    return _GENERATED_CHECKSUMS + yaml.safe_dump(content, sort_keys=False)


def _written(path: Path, text: str) -> Path:
    """Write a file in its place; where nothing can be written, in the user's cache, or else until this process ends."""
    for folder in (path.parent, CACHE / "competitions" / path.parent.name):
        with suppress(OSError):
            return replaced(folder / path.name, text)
    return replaced(_temporary() / path.parent.name / path.name, text)


@cache
def _temporary() -> Path:
    folder = tempfile.mkdtemp(prefix="mlebench-")  # a TemporaryDirectory would also end with a forked process
    _copies().callback(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def replaced(path: Path, text: str) -> Path:
    """Write a file that other processes may read or write at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    draft.write_text(text, "utf-8")
    return draft.replace(path)
