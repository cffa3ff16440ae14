"""How well one column alone predicts the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

MAX_ROWS = 2_000
MIN_ROWS = 50
"""With fewer rows, a column predicts the answers by chance."""
_FOLDS = 5
_MAX_CLASSES = 20
_MAX_TARGETS = 20
_LEAVES = (5, 50)
"""Leaves of a tree for weak effects, and of one for functions."""


def targets_of(answers: pd.DataFrame) -> NDArray[np.float64] | None:
    """Answers as numbers of shape (rows, targets): numbers as they are, of classes which one it is.

    The targets are standardised. None if there is nothing to predict: all answers are equal, or nearly all differ and
    are no numbers, as texts and masks do.
    """
    import numpy as np
    import pandas as pd

    columns: list[NDArray[np.float64]] = []
    for name in list(answers)[:_MAX_TARGETS]:
        numbers = pd.to_numeric(answers[name], errors="coerce")
        if numbers.notna().all():
            columns.append(numbers.to_numpy(dtype=float))
            continue
        counts = answers[name].value_counts()
        if len(counts) <= len(answers) / 2:
            columns += [(answers[name] == value).to_numpy(dtype=float) for value in counts.index[:_MAX_CLASSES]]
    varying = [(column - column.mean()) / column.std() for column in columns if column.std() > 0]
    return np.column_stack(varying) if varying else None


def skill(feature: pd.Series, targets: NDArray[np.float64], groups: NDArray[Any] | None = None) -> float:
    """The share of the variance of the answers that a decision tree on one column explains in cross-validation.

    1 for a column that tells them, about 0 for one that tells nothing. A tree finds any function of numbers, in
    either direction and with gaps, and blocks of neighbours with the same answer. Rows of one of the `groups` are in
    the same fold: what only tells the groups apart, such as the number of a patient, tells nothing.
    """
    import numpy as np
    from sklearn.model_selection import GroupKFold, KFold, cross_val_predict
    from sklearn.tree import DecisionTreeRegressor

    values = _numbers(feature)
    if len(values) < MIN_ROWS or (values == values[0]).all():
        return 0.0
    total = np.square(targets - targets.mean(axis=0)).sum()
    folds = KFold(_FOLDS, shuffle=True, random_state=0) if groups is None else GroupKFold(min(_FOLDS, len(set(groups))))
    unexplained = [total]
    for leaves in _LEAVES:
        tree = DecisionTreeRegressor(min_samples_leaf=max(2, len(values) // leaves), random_state=0)
        predicted = cross_val_predict(tree, values[:, None], targets, groups=groups, cv=folds).reshape(targets.shape)
        unexplained.append(np.square(targets - predicted).sum())
    return float(1 - min(unexplained) / total)


def drawn(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a table from which skills are estimated: of many, some."""
    return table if len(table) <= MAX_ROWS else table.sample(MAX_ROWS, random_state=0)


def skills(features: pd.DataFrame, answers: pd.DataFrame, groups: pd.Series | None = None) -> dict[str, float]:
    """The skill of each column, best first. The rows of both are the same, and among those of `groups`."""
    targets = targets_of(answers)
    if targets is None or len(answers) < MIN_ROWS:
        return {}
    of_rows = None if groups is None else groups.loc[answers.index].to_numpy()
    if of_rows is not None and not 1 < len(set(of_rows)) < len(of_rows):
        of_rows = None
    found = {str(name): skill(features[name], targets, of_rows) for name in features}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _numbers(feature: pd.Series) -> NDArray[Any]:
    """The ranks of numbers, of categories, and of texts by their length. Missing values are below all others.

    A tree finds the same with ranks, and has no more than 32 bits for a number, too few for times and long ids.
    """
    import pandas as pd

    texts = feature.fillna("").astype(str).str.strip()
    present = texts != ""
    numbers: pd.Series = pd.to_numeric(texts.where(present), errors="coerce").astype(float)
    if numbers.notna().sum() < 0.9 * present.sum():
        numbers = texts.where(present) if texts.nunique() <= len(texts) / 2 else texts.where(present).str.len()
    return numbers.rank(method="dense").fillna(0).to_numpy(dtype=float)
