"""Draw test sets from the labelled data.

The published files have a fixed order of rows, so every function documents the order of its result.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence, Sized
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pandas as pd

Rows = TypeVar("Rows", bound=Sized)


def hold_out(
    rows: Rows, test_size: float | None = None, seed: int = 0, *, train_size: float | None = None
) -> tuple[Rows, Rows]:
    """Split a frame, list or array at random into (train, test), as scikit-learn's ``train_test_split`` does.

    The published test sets were drawn with that function. The algorithm is repeated here because test sets must stay
    the same with any version of scikit-learn, and because importing scikit-learn takes longer than most splits.

    `test_size` is a share (the test part has ceil(share * n) rows) or an absolute count; `train_size` likewise, rounded
    down. One of them can be left out: it gets the remaining rows. Both parts are in shuffled order, and a frame keeps
    its index labels. Raises `ValueError` if there are too few rows.

    >>> hold_out(list("abcdefghij"), 0.2)
    (['e', 'j', 'b', 'g', 'h', 'd', 'a', 'f'], ['c', 'i'])
    """
    import numpy as np

    test_count, train_count = _sizes(len(rows), test_size, train_size)
    order = np.random.RandomState(seed).permutation(len(rows))
    return _take(rows, order[test_count : test_count + train_count]), _take(rows, order[:test_count])


def _sizes(count: int, test_size: float | None, train_size: float | None) -> tuple[int, int]:
    """The numbers of rows of the test part and of the training part."""
    if test_size is None and train_size is None:
        raise ValueError("hold_out needs the size of one part")
    test_count, train_count = _count(test_size, count, math.ceil), _count(train_size, count, math.floor)
    test_count = count - train_count if test_size is None else test_count
    train_count = count - test_count if train_size is None else train_count
    shares = sum(size for size in (test_size, train_size) if isinstance(size, float))
    if test_count < 1 or train_count < 1 or test_count + train_count > count or shares > 1:
        raise ValueError(f"{count} rows cannot be split with test_size={test_size} and train_size={train_size}")
    return test_count, train_count


def _count(size: float | None, count: int, rounded: Callable[[float], int]) -> int:
    """The number of rows for a share of `count` rows or for an absolute count; 0 for None."""
    return rounded(size * count) if isinstance(size, float) else int(size or 0)


def _take(rows: Any, positions: Any) -> Any:
    if hasattr(rows, "iloc"):
        return rows.take(positions)
    return rows[positions] if hasattr(rows, "shape") else [rows[position] for position in positions]


def hold_out_by(
    table: pd.DataFrame, column: str, test_size: float, seed: int = 0, *, ordered: bool = False
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Split rows into (train, test) such that equal values of `column` stay together. Both parts are in file order.

    `hold_out` draws from the distinct values in order of first appearance, or in ascending order if `ordered`.
    """
    values = table[column].unique()
    _, test_values = hold_out(sorted(values) if ordered else values, test_size, seed)
    is_test = table[column].isin(test_values)
    return table[~is_test], table[is_test]


def hold_out_last(table: pd.DataFrame, column: str, test_size: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Split rows into (train, test) such that the test rows are those with the last values of `column`.

    Equal values stay together, so the size of the test part is the nearest to `test_size` that they allow. Both parts
    are in file order. Raises `ValueError` if a cell has no place in the order (see `in_order`), or if the nearest size
    is less than half of `test_size` or more than twice as much.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"day": ["25/12/2020", "3/1/2021", "3/1/2021", "1/2/2020", "4/5/2020"]})
    >>> hold_out_last(table, "day", 0.4)[1].index.tolist()
    [1, 2]
    """
    order = in_order(table[column])
    if missing := int(order.isna().sum()):
        raise ValueError(f"{missing} of {len(table)} cells of {column} are empty or no dates: leave those rows out")
    shares = order.value_counts(normalize=True).sort_index(ascending=False).cumsum()
    first = (shares / test_size).where(lambda ratio: ratio >= 1, test_size / shares).idxmin()
    is_test = order >= first
    share = float(is_test.mean())
    if not 0.5 <= share / test_size <= 2:
        raise ValueError(f"the last rows by {column} are {share:.1%}, not about {test_size:.1%}: state another size")
    return table[~is_test], table[is_test]


def in_order(cells: pd.Series) -> pd.Series:
    """Numbers as they are, and texts as dates; NaT for texts that are none. 3/4/2020 is in April if any day is first.

    >>> import pandas as pd
    >>> in_order(pd.Series(["3/4/2020", "25/12/2020", "x"])).dt.month.tolist()
    [4.0, 12.0, nan]
    """
    import warnings

    import pandas as pd

    if cells.dtype.kind in "iufM":
        return cells
    texts = cells.astype("string").str.strip()
    texts = texts.where(texts.str.contains(r"^\D{0,12}\d.*[-/.:, ].*\d"))
    first = pd.to_numeric(texts.str.extract(r"^(\d\d?)[-/.]\d\d?[-/.]\d", expand=False))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas says which of 3/4 it takes for the day
        return pd.to_datetime(
            texts, format="mixed", dayfirst=bool((first > 12).any()), errors="coerce", utc=True
        ).dt.tz_localize(None)


def hold_out_groups(
    table: pd.DataFrame, column: str, test_size: float, seed: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Split rows into (train, test) such that equal values of `column` stay together. The groups are shuffled.

    Groups are taken in ascending order of `column`, drawn by `hold_out`, and concatenated in the order that it
    returns; rows of a group stay in file order.
    """
    import numpy as np

    groups = list(table.groupby(column).indices.values())
    train, test = hold_out(groups, test_size, seed)
    return table.iloc[np.concatenate(train)], table.iloc[np.concatenate(test)]


def secret_random(*secrets: Iterable[Any]) -> Random:
    """A generator for what agents must not reconstruct, such as the order of test rows, seeded by a hash of secrets.

    With a constant seed, anybody who knows the code and the number of rows knows the position of each test row in
    Kaggle's table, and its label if that table is sorted by label. `secrets` are values that agents cannot assign to
    rows: names and labels of the test rows, or sizes of their files, in the order of the download. The same download
    always gives the same generator.

    >>> secret_random(["a7", "b3"]).random() == secret_random(["a7", "b3"]).random()
    True
    >>> secret_random(["a7", "b3"]).random() == secret_random(["b3", "a7"]).random()
    False
    """
    values = repr([[str(value) for value in column] for column in secrets])
    return Random(hashlib.sha256(values.encode()).hexdigest())  # 256 bits cannot be tried out


def shuffled(rows: pd.DataFrame, *secrets: Iterable[Any]) -> pd.DataFrame:
    """The rows in an order that depends on all of their cells and on further `secrets`, see `secret_random`."""
    random = secret_random(*(rows[column] for column in rows), *secrets)
    return rows.iloc[random.sample(range(len(rows)), len(rows))]


def anonymous(rows: pd.DataFrame, column: str, name: str, *secrets: Iterable[Any]) -> pd.DataFrame:
    """Shuffle the rows and rename them: `column` gets the pattern `name` filled with 0, 1, 2, ...

    Index labels stay with the rows, so the old names are ``rows.loc[result.index, column]``. The function is for names
    whose labels are publicly known: neither the new names nor the new order reveal the old names. `secrets` are needed
    if the cells can be guessed, see `shuffled`.

    >>> import pandas as pd
    >>> anonymous(pd.DataFrame({"id": ["a7", "b3", "c9"], "y": [7, 3, 9]}), "id", "test_{}")
           id  y
    2  test_0  9
    0  test_1  7
    1  test_2  3
    """
    new_names = [name.format(number) for number in range(len(rows))]
    return shuffled(rows, *secrets).assign(**{column: new_names})


def one_hot(labels: pd.Series, classes: Sequence[Any]) -> pd.DataFrame:
    """One 0/1 integer column for each of `classes`, in that order, with the index of `labels`.

    >>> import pandas as pd
    >>> one_hot(pd.Series(["b", "a"]), ["a", "b"]).values.tolist()
    [[0, 1], [1, 0]]
    """
    import numpy as np
    import pandas as pd

    matches = labels.to_numpy()[:, None] == np.asarray(list(classes), dtype=labels.to_numpy().dtype)[None, :]
    return pd.DataFrame(matches.astype("int64"), index=labels.index, columns=list(classes))
