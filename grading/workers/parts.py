"""Score a submission on the public and on the private part of the test set, as Kaggle's leaderboards do.

The parts are a fixed choice of units: rows of a patient, a drive or a page are in the same part.
"""

from __future__ import annotations

import hashlib
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from common import plain_json
from competitions.facts import Resampling
from grading.workers.cutting import Cutter, Uncuttable, cutter
from grading.workers.halves import MIN_DRAWS, MIN_UNITS, SECONDS, draw_halves, same_score, score_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from competitions.facts import CompetitionFacts

SHARE = 0.3
"""Share of the units that are public, by default."""
_DRAWS = 40
"""Halves of a part from which its standard error is estimated, with a relative error of about 11 %."""


@dataclass(frozen=True)
class Part:
    """The score on a part of the test set."""

    score: float
    standard_error: float
    """Over choices of as many units; NaN where it is not known."""
    out_of_time: bool = False
    """It is not known because the time for it was over."""


@dataclass(frozen=True)
class Parts:
    """The scores on both parts; None where there is none, for the reason in `message`."""

    public: Part | None = None
    private: Part | None = None
    id: str | None = None
    """The column of ids."""
    message: str | None = None

    @classmethod
    def of(cls, content: dict[str, Any]) -> Parts:
        """The parts from their JSON form."""
        named = {name: content[name] for name in ("public", "private") if content.get(name) is not None}
        parts = {name: Part(**{each: plain_json.number(part[each]) for each in part}) for name, part in named.items()}
        return cls(**parts, id=content.get("id"), message=content.get("message"))


def public_units(names: Sequence[str], competition_id: str, share: float = SHARE) -> NDArray[np.bool_]:
    """Which units are public: those with the smallest hashes of competition and name, the same in every process.

    The number of public units is exactly the share, rounded, but at least one unit is in each part.
    """
    import numpy as np

    def hash_of(name: str) -> int:
        text = f"{competition_id}\0{name}"
        return int.from_bytes(hashlib.sha256(text.encode(errors="replace")).digest()[:8])

    hashes = np.fromiter(map(hash_of, names), dtype=np.uint64, count=len(names))  # compact: there may be 13 million
    wanted = min(max(1, round(share * len(names))), len(names) - 1)
    public = np.zeros(len(names), dtype=bool)
    public[np.argsort(hashes, kind="stable")[:wanted]] = True
    return public


def score_parts(
    score: Callable[[Any, Any], float],
    tables: tuple[Any, Any],
    facts: CompetitionFacts,
    *,
    whole: float | None,
    share: float = SHARE,
    id: str | None = None,
    seconds: float = SECONDS,
) -> Parts:
    """Scores of a valid submission on the public and on the private part of the test set. Nothing is raised.

    Args:
        score: the score of a table, given the table of answers.
        tables: the submission and the answers, as read.
        facts: those of the competition, which say what a unit is; by default rows with the same id.
        whole: the score on all rows, which cutting must reproduce when nothing is cut. Without it, only the public part
            is scored.
        share: share of the units that are public.
        id: the column of ids; by default the one that the submission and the answers share.
        seconds: time for the standard errors; 0 for none.
    """
    how = facts.resampling or Resampling()
    try:
        cut = cutter(*tables, how.model_copy(update={"id": id or how.id}))
    except Uncuttable as error:
        return Parts(message=str(error))
    public = public_units(cut.names, facts.id, share)
    few = min(public.sum(), (~public).sum())
    if few < MIN_UNITS:
        units = f"{few} {'units' if few != 1 else 'unit'} of {cut.units}"
        return Parts(id=cut.key, message=f"a part has only {units}, and needs {MIN_UNITS}")
    if whole is not None and not same_score(score_of(score, cut.of(public | True))[0], whole):
        return Parts(id=cut.key, message="the score is not a function of rows that are found by their ids")
    found: dict[str, Part] = {}
    reasons = []
    for name, chosen in {"public": public, "private": ~public}.items() if whole is not None else [("public", public)]:
        value, reason = score_of(score, cut.of(chosen))
        if not math.isfinite(value):
            reasons.append(f"the {name} part cannot be scored: {reason}")
            continue
        noise, out_of_time = math.nan, False
        if seconds:
            noise, out_of_time = _standard_error(score, cut, chosen, time.monotonic() + seconds / 2)
        found[name] = Part(value, noise, out_of_time)
    return Parts(found.get("public"), found.get("private"), cut.key, "; ".join(reasons) or None)


def _standard_error(
    score: Callable[[Any, Any], float], cut: Cutter, part: NDArray[np.bool_], deadline: float
) -> tuple[float, bool]:
    """The delete-half jackknife of Shao and Wu 1989, as in `grading.statistics.split_noise`; NaN where it is not known.

    Also returns whether it is not known because the deadline has passed.
    """
    scores, refused, _ = draw_halves(score, cut, part, _DRAWS, deadline)
    if len(scores) < MIN_DRAWS or refused > len(scores):
        return math.nan, len(scores) + refused < _DRAWS
    units = int(part.sum())
    return statistics.stdev(scores) * math.sqrt((units // 2) / (units - units // 2)), False
