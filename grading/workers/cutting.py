"""Cut a submission and its answers into units: single rows, or the patients, drives or pages that rows belong to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from competitions.facts import Resampling


class Uncuttable(Exception):
    """The test set cannot be cut; the message says why."""


@dataclass(frozen=True)
class Cutter:
    """Submission and answers with the unit of each row, as its position in `names`, or their number for none."""

    submission: pd.DataFrame
    answers: pd.DataFrame
    key: str
    """The column of ids."""
    of_submission: NDArray[np.int64]
    of_answers: NDArray[np.int64]
    names: list[str]
    """Names of the units, in the order in which they occur in the answers."""

    @property
    def units(self) -> int:
        """The number of units."""
        return len(self.names)

    def of(self, chosen: NDArray[np.bool_]) -> tuple[Any, Any]:
        """The rows of both tables whose units are chosen, in their order."""
        import numpy as np

        first = self.submission[~np.isin(self.of_submission, np.flatnonzero(~chosen))]
        second = self.answers[chosen[self.of_answers]]
        return first.reset_index(drop=True), second.reset_index(drop=True)


def cutter(submission: Any, answers: Any, resampling: Resampling | None) -> Cutter:
    """Raises `Uncuttable` if rows of the submission cannot be found by ids."""
    import pandas as pd

    if resampling is not None and resampling.unknown:
        raise Uncuttable(resampling.unknown)
    if not isinstance(submission, pd.DataFrame) or not isinstance(answers, pd.DataFrame):
        raise Uncuttable("submission or answers are no table with rows")
    key = _key(submission, answers, resampling)
    ids = answers[key].astype(str)
    units = answers[resampling.column].astype(str) if resampling is not None and resampling.column else ids
    if resampling is not None and resampling.pattern:
        units = units.str.extract(resampling.pattern, expand=False).fillna(units)
    numbers, names = pd.factorize(units)
    by_id = pd.Series(numbers, index=ids.to_numpy())
    if by_id.groupby(level=0).nunique().max() > 1:
        raise Uncuttable(f"rows with the same `{key}` belong to several units")
    by_id = by_id[~by_id.index.duplicated()]
    submitted = _texts(submission[key], answers[key])
    # Rows that the answers lack, such as customers who bought nothing, are in no unit and in every half. Some graders
    # let rows be left out. Both in one file means that the grader matches ids in a way that is not known here.
    missing = int((~by_id.index.isin(submitted)).sum())
    if missing and not submitted.isin(by_id.index).all():
        raise Uncuttable(f"{missing} of {len(by_id)} ids of the answers are not in column `{key}` of the submission")
    numbers_of_rows = by_id.reindex(submitted).fillna(len(names))
    of_submission, of_answers = numbers_of_rows.to_numpy(dtype="int64"), numbers.astype("int64")
    return Cutter(submission, answers, key, of_submission, of_answers, list(names))


def _key(submission: pd.DataFrame, answers: pd.DataFrame, resampling: Resampling | None) -> str:
    """The column of ids: of those that both tables have with the same values, the one with the most values."""
    if resampling is not None and resampling.id:
        if resampling.id not in submission or resampling.id not in answers:
            raise Uncuttable(f"there is no column `{resampling.id}`")
        return resampling.id
    shared = [name for name in answers.columns if name in submission.columns and answers[name].dtype.kind != "f"]
    distinct = {
        name: answers[name].nunique()
        for name in shared
        if set(answers[name].astype(str)) == set(_texts(submission[name], answers[name]))
    }
    if not distinct:
        raise Uncuttable("submission and answers have no column of ids in common")
    return str(max(distinct, key=lambda name: distinct[name]))


def _texts(submitted: pd.Series, expected: pd.Series) -> pd.Series:
    """The ids of a submission as texts. Graders compare numbers by value: the number 1.0 is the id 1 of the answers."""
    import numpy as np

    texts = submitted.astype(str)
    if submitted.dtype.kind == "f" and expected.dtype.kind in "iu":
        numbers = submitted.to_numpy(dtype=float)
        whole = (np.abs(numbers) < 2**53) & (numbers == np.floor(numbers))
        texts[whole] = numbers[whole].astype("int64").astype(str)
    return texts
