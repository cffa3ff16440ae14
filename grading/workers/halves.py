"""Score a submission on random halves of the test set, which shows how much its score depends on the choice of rows.

Halves are drawn without replacement, so each is a test set that every grader accepts: no id occurs twice. The mean of a
random half varies around the mean of all n units with variance s^2 / n, which is the variance of the bootstrap (Shao
and Wu 1989, A general theory for jackknife variance estimation, Annals of Statistics 17(3)).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from competitions.facts import Resampling

DRAWS, SECONDS = 200, 20.0
MIN_UNITS, MIN_DRAWS = 5, 20
_MAX_REFUSED_SHARE = 0.2


@dataclass(frozen=True)
class Halves:
    """Scores on halves of the test set; empty if it cannot be cut, with the reason in `message`."""

    scores: list[float] = field(default_factory=list)
    units: int = 0
    """Number of rows, patients, pages ... of the test set that are drawn as wholes."""
    drawn: int = 0
    """Number of units in a half."""
    message: str | None = None


def score_halves(
    score: Callable[[Any, Any], float],
    submission: Any,
    answers: Any,
    how: Resampling | None,
    *,
    whole: float,
    draws: int = DRAWS,
    seconds: float = SECONDS,
) -> Halves:
    """Scores of a valid submission on up to `draws` random halves of the test set, within about `seconds`.

    The result is deterministic, except for the number of draws if the time runs out. Nothing is raised: halves that a
    grader refuses are not counted, and `message` says why if too few are left.

    Args:
        score: the score of a table, given the table of answers.
        submission: the submission, as read.
        answers: the answers, as read.
        how: what is drawn; by default rows with the same id.
        whole: the score on all rows. Cutting must reproduce it when nothing is cut.
        draws: number of halves.
        seconds: time for all halves.
    """
    deadline = time.monotonic() + seconds
    try:
        cut = _cutter(submission, answers, how)
    except _Uncuttable as error:
        return Halves(message=str(error))
    count = cut.units
    if count < MIN_UNITS:
        return Halves(units=count, message=f"the test set has only {count} {'units' if count != 1 else 'unit'}")
    import numpy as np

    generator = np.random.default_rng(0)
    scores: list[float] = []
    refused, last_reason = 0, ""
    started = time.monotonic()
    if not _same(_score(score, cut.of(np.ones(count, dtype=bool)))[0], whole):
        return Halves(units=count, message="the score is not a function of rows that are found by their ids")
    seconds_each = time.monotonic() - started
    if seconds_each * MIN_DRAWS / 2 > seconds:
        return Halves(units=count, message=f"scoring takes {seconds_each:.0f} s, too long for {MIN_DRAWS} halves")
    for _ in range(draws):
        drawn = np.zeros(count, dtype=bool)
        drawn[generator.choice(count, count // 2, replace=False)] = True
        value, reason = _score(score, cut.of(drawn))
        if math.isfinite(value):
            scores.append(value)
        else:
            refused, last_reason = refused + 1, reason
        if time.monotonic() > deadline:
            break
    if len(scores) < MIN_DRAWS or refused > _MAX_REFUSED_SHARE * (refused + len(scores)):
        reason = (
            f"{refused} of {refused + len(scores)} halves cannot be scored: {last_reason}"
            if refused
            else "it takes too long"
        )
        return Halves(units=count, message=reason)
    return Halves(scores, count, count // 2)


class _Uncuttable(Exception):
    """The test set cannot be cut; the message says why."""


@dataclass(frozen=True)
class _Cutter:
    """Submission and answers with the unit of each row, as numbers from 0 to `units` - 1, or `units` for none."""

    submission: pd.DataFrame
    answers: pd.DataFrame
    of_submission: NDArray[np.int64]
    of_answers: NDArray[np.int64]
    units: int

    def of(self, chosen: NDArray[np.bool_]) -> tuple[Any, Any]:
        """The rows of both tables whose units are chosen, in their order."""
        import numpy as np

        first = self.submission[~np.isin(self.of_submission, np.flatnonzero(~chosen))]
        second = self.answers[chosen[self.of_answers]]
        return first.reset_index(drop=True), second.reset_index(drop=True)


def _cutter(submission: Any, answers: Any, resampling: Resampling | None) -> _Cutter:
    """Raises `_Uncuttable` if rows of the submission cannot be found by ids."""
    import pandas as pd

    if resampling is not None and resampling.unknown:
        raise _Uncuttable(resampling.unknown)
    if not isinstance(submission, pd.DataFrame) or not isinstance(answers, pd.DataFrame):
        raise _Uncuttable("submission or answers are no table with rows")
    key = _key(submission, answers, resampling)
    ids = answers[key].astype(str)
    units = answers[resampling.column].astype(str) if resampling is not None and resampling.column else ids
    if resampling is not None and resampling.pattern:
        units = units.str.extract(resampling.pattern, expand=False).fillna(units)
    numbers, names = pd.factorize(units)
    by_id = pd.Series(numbers, index=ids.to_numpy())
    if by_id.groupby(level=0).nunique().max() > 1:
        raise _Uncuttable(f"rows with the same `{key}` belong to several units")
    by_id = by_id[~by_id.index.duplicated()]
    # Rows that the answers lack, such as customers who bought nothing, are in no unit and in every half.
    numbers_of_rows = by_id.reindex(submission[key].astype(str)).fillna(len(names))
    return _Cutter(submission, answers, numbers_of_rows.to_numpy(dtype="int64"), numbers.astype("int64"), len(names))


def _key(submission: pd.DataFrame, answers: pd.DataFrame, resampling: Resampling | None) -> str:
    """The column of ids: of those that both tables have with the same values, the one with the most values."""
    if resampling is not None and resampling.id:
        if resampling.id not in submission or resampling.id not in answers:
            raise _Uncuttable(f"there is no column `{resampling.id}`")
        return resampling.id
    shared = [name for name in answers.columns if name in submission.columns and answers[name].dtype.kind != "f"]
    distinct = {name: answers[name].nunique() for name in shared if _values(answers, name) == _values(submission, name)}
    if not distinct:
        raise _Uncuttable("submission and answers have no column of ids in common")
    return str(max(distinct, key=lambda name: distinct[name]))


def _values(table: pd.DataFrame, name: str) -> set[str]:
    return set(table[name].astype(str))


def _score(score: Callable[[Any, Any], float], tables: tuple[Any, Any]) -> tuple[float, str]:
    """The score, or NaN and why there is none. A half may lack a class without which a metric is not defined."""
    try:
        value = float(score(*tables))
    except Exception as error:
        return math.nan, " ".join(f"{type(error).__name__}: {error}".split())[:200]
    return value, "" if math.isfinite(value) else f"the score is {value}"


def _same(score: float, whole: float) -> bool:
    return math.isclose(score, whole, rel_tol=1e-9, abs_tol=1e-12)
