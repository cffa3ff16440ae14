"""The files behind the paths of a `Competition`: fetched from a store, or made of what is known."""

from __future__ import annotations

import atexit
import os
import secrets
from contextlib import ExitStack, suppress
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from mlebench._catalog import competition

if TYPE_CHECKING:
    import pandas as pd

    from competitions.competition import Competition as CatalogCompetition
    from storage.dataset import Dataset

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "mle-bench"
"""Where data are kept that a user does not name a place for."""
_PARTS = (("prepared", "public"), ("prepared", "private"))
FROM_THRESHOLDS = "thresholds of competition.yaml"
"""The `source` of a leaderboard that is made of the thresholds."""


def existing(competition_id: str, store: str | None, name: str, path: Path) -> Path:
    """The path of a file or folder that stands for `path`, which does not exist; `path` if there is none."""
    if name == "leaderboard":
        return _written(path, leaderboard_of(competition(competition_id)).to_csv(index=False))
    if name == "checksums":
        return _written(path, _checksums_of(competition(competition_id)))
    if store is None or (dataset := stored(store, competition_id)) is None:
        return path
    places = [place for place, pair in enumerate(pairwise(path.parts)) if pair in _PARTS]
    if not places:
        return path
    relative = path.parts[places[-1] + 1 :]
    return _folder(store, dataset, relative[0]).joinpath(*relative)


def stored(store: str, competition_id: str) -> Dataset | None:
    """The prepared dataset of edition v1 in a store; None if there is none."""
    from storage.dataset import Dataset
    from storage.datasets.current import find
    from storage.datasets.published_layout import EDITION
    from tasks.wiring.context import open_store

    return find(open_store(store), Dataset(EDITION, competition_id))


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


def leaderboard_of(ours: CatalogCompetition) -> pd.DataFrame:
    """A leaderboard with the thresholds of competition.yaml, and so with the same medals for every score.

    That of a folder in the published format is the one that lies there.

    A row for each team, best first. The scores at the places of the medals, of the median, and at each 5 % of the teams
    are the known ones. Between them, teams have the score of the next known place below.

    Returns:
        A frame with the columns `rank`, `score` and `source`.
    """
    import pandas as pd

    from competitions.leaderboard import medal_places

    if ours.published_format:
        table = pd.read_csv(ours.folder / "leaderboard.csv", float_precision="round_trip")
        return table[table["score"].notna()].reset_index(drop=True)
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
    return yaml.safe_dump(content, sort_keys=False)


def _written(path: Path, text: str) -> Path:
    """Write a file in its place; where nothing can be written, in the user's cache, or else until this process ends."""
    for folder in (path.parent, CACHE / "competitions" / path.parent.name):
        with suppress(OSError):
            return replaced(folder / path.name, text)
    return replaced(_temporary() / path.parent.name / path.name, text)


@cache
def _temporary() -> Path:
    return Path(_copies().enter_context(TemporaryDirectory(prefix="mlebench-")))


def replaced(path: Path, text: str) -> Path:
    """Write a file that other processes may read or write at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    draft.write_text(text, "utf-8")
    return draft.replace(path)
