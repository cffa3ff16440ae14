"""The shape of a submission: columns, rows, ids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, strategies

from competitions.scoring.checks import (
    align,
    align_repeated,
    is_ascending,
    locate,
    match,
    require_columns,
    require_exact_columns,
    require_rows,
    require_same_ids,
    sort_by,
)
from competitions.scoring.matching import ascending, positions
from competitions.tables.arrays import MANY
from grading import InvalidSubmission

ANSWERS = pd.DataFrame({"id": [3, 1, 2], "y": [30, 10, 20]})


def frame(ids: Any, **columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"id": ids, "p": np.arange(len(ids)), **columns})


def test_columns() -> None:
    require_columns(frame([1], extra=1), "p", "id")
    with pytest.raises(InvalidSubmission, match="lacks column `y`; it has columns `id`, `p`"):
        require_columns(frame([1]), "id", "y")
    with pytest.raises(InvalidSubmission, match="has no columns"):
        require_columns(pd.DataFrame(), "id")


def test_exact_columns() -> None:
    require_exact_columns(frame([1]), ["p", "id"])
    require_exact_columns(frame([1]), ["id", "p"], ordered=True)
    with pytest.raises(InvalidSubmission, match="must not have column `extra`"):
        require_exact_columns(frame([1], extra=1), ["id", "p"])
    with pytest.raises(InvalidSubmission, match="order"):
        require_exact_columns(frame([1]), ["p", "id"], ordered=True)
    with pytest.raises(InvalidSubmission, match="lacks column"):
        require_exact_columns(frame([1]), ["id", "p", "q"])


def test_a_hostile_header_still_gives_one_short_line() -> None:
    with pytest.raises(InvalidSubmission) as caught:
        require_columns(pd.DataFrame(columns=["a\nb" * 500] * 50), "id")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def test_rows() -> None:
    require_rows(frame([1, 2]), 2)
    with pytest.raises(InvalidSubmission, match="has 2 rows; 3 are expected"):
        require_rows(frame([1, 2]), 3)


@pytest.mark.parametrize("ids", [[1, 2, 3], [3, 1, 2], [2.0, 1.0, 3.0]])
def test_align_sorts_both_by_id(ids: list[Any]) -> None:
    submission, answers = align(frame(ids), ANSWERS, "id", ["p"])
    assert answers["y"].tolist() == [10, 20, 30]
    assert submission["id"].tolist() == [1, 2, 3]
    assert submission["p"].tolist() == [ids.index(i) for i in (1, 2, 3)]
    assert submission.index.tolist() == answers.index.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("ids", "hint"),
    [
        ([1, 2], "2 rows; 3"),
        ([1, 2, 3, 4], "4 rows; 3"),
        ([1, 2, 4], r"1 unknown \(such as 4\), 1 missing \(such as 3\)"),
        ([1, 2, 2], r"1 missing \(such as 3\), 1 repeated"),
        ([1, 2, np.nan], "1 unknown"),
        (["1", "2", "3"], "3 unknown"),
        ([1, "2", 3], "mixes text and numbers"),
    ],
)
def test_align_rejects_other_ids(ids: list[Any], hint: str) -> None:
    with pytest.raises(InvalidSubmission, match=hint):
        align(frame(ids), ANSWERS, "id")


def test_align_compares_nan_with_nothing() -> None:
    both = pd.DataFrame({"id": ["a", np.nan]})
    with pytest.raises(InvalidSubmission):
        align(both, both, "id")


def test_align_allows_ids_that_the_answers_repeat() -> None:
    both = pd.DataFrame({"id": ["b", "a", "a"]})
    assert align(both, both, "id")[0]["id"].tolist() == ["a", "a", "b"]


def test_align_leaves_its_arguments_alone() -> None:
    submission, answers = frame([2, 3, 1]), ANSWERS.copy()
    align(submission, answers, "id")
    pd.testing.assert_frame_equal(answers, ANSWERS)
    assert submission["id"].tolist() == [2, 3, 1]


def test_align_repeated_counts_each_repetition() -> None:
    submission, answers = align_repeated(frame([2, 1, 3, 2.0]), ANSWERS, "id", ["p"])
    assert answers["y"].tolist() == [30, 10, 20, 20]
    assert submission["p"].tolist() == [2, 1, 0, 3]


def test_same_ids_ignores_repetitions() -> None:
    require_same_ids(frame([1, 2, 3, 3.0]), ANSWERS, "id")
    for ids in ([1, 2], [1, 2, 3, 4], ["1", "2", "3"], [1, 2, 3, np.nan]):
        with pytest.raises(InvalidSubmission, match="ids in `id`"):
            require_same_ids(frame(ids), ANSWERS, "id")


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint64"])
@pytest.mark.parametrize("largest", [3, 100, 2**62])
@pytest.mark.parametrize("seed", range(5))
def test_whole_numbers_are_sorted_as_by_pandas(dtype: str, largest: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    low = 0 if dtype == "uint64" else -min(largest, 128)
    ids = rng.integers(low, min(largest, np.iinfo(dtype).max), 40).astype(dtype)
    for chosen in (ids, np.unique(ids)[::-1], rng.permutation(np.unique(ids)), ids[:0]):
        table = pd.DataFrame({"p": np.arange(len(chosen)), "id": chosen}, index=range(len(chosen), 0, -1))
        expected = table.reset_index(drop=True).sort_values("id", ignore_index=True)
        pd.testing.assert_frame_equal(sort_by(table, "id"), expected)
        assert (ascending(table["id"]) is None) == (len(np.unique(chosen)) < len(chosen)), (
            "repeated ids: as pandas does"
        )


def test_sort_by_numbers_rows_anew() -> None:
    assert sort_by(frame([3, 1, 2]), "id")["p"].tolist() == [1, 2, 0]
    with pytest.raises(InvalidSubmission, match="lacks column"):
        sort_by(pd.DataFrame(), "id")


@given(
    strategies.lists(
        strategies.text(strategies.characters(exclude_categories=["Cs"]), max_size=5)
        | strategies.sampled_from(["a", "\0", "nan"])
    )
)
def test_texts_are_sorted_as_python_sorts_them(ids: list[str]) -> None:
    table = pd.DataFrame({"id": np.array(ids, dtype=object), "p": np.arange(len(ids))}).set_axis(range(7, 7 + len(ids)))
    pd.testing.assert_frame_equal(sort_by(table, "id"), table.sort_values("id", ignore_index=True))


@pytest.mark.parametrize(
    ("submitted", "expected", "rows"),
    [
        ([1, 2, 5], [1, 2, 5], [0, 1, 2]),
        ([5, 1, 2], [1, 2, 5], [1, 2, 0]),
        ([5, 1, 2], [2, 5, 1], [2, 0, 1]),
        ([1, 2, 6], [1, 2, 5], None),
        ([2, 2, 5], [2, 2, 5], None),
        ([], [], []),
    ],
)
def test_positions_of_whole_numbers(submitted: list[int], expected: list[int], rows: list[int] | None) -> None:
    found = positions(*(pd.Series(ids, dtype=np.int64) for ids in (submitted, expected)))
    assert (None if found is None else found.tolist()) == rows


@pytest.mark.parametrize("count", [MANY - 1, MANY])
def test_rows_of_wide_tables_are_aligned_as_those_of_narrow_ones(count: int) -> None:
    names = [f"c{number}" for number in range(count)]
    values = np.arange(3.0 * count).reshape(3, count)
    answers = pd.DataFrame(values, columns=names).assign(id=["b", "a", "c"])
    submission = answers.iloc[[2, 0, 1]].set_axis([7, 7, 8])
    ours, theirs = align(submission, answers, "id", names)
    for found in (ours, theirs):
        assert found["id"].tolist() == ["a", "b", "c"]
        assert (found[names].to_numpy() == values[[1, 0, 2]]).all()
        assert found.index.tolist() == [0, 1, 2]


ARROW = pd.ArrowDtype(pa.string())


@pytest.mark.parametrize(
    ("ids", "ascending"),
    [
        (pd.Series([1, 2, 5]), True),
        (pd.Series([1, 2, 2]), False),
        (pd.Series([2, 1]), False),
        (pd.Series([7]), True),
        (pd.Series([], dtype=object), True),
        (pd.Series([1.0, np.nan, 3.0]), False),
        (pd.Series(["a", "b", "ba"]), True),
        (pd.Series(["a", "B"]), False),
        (pd.Series(["a", 1], dtype=object), False),
        (pd.Series(["a", "b", "ba"], dtype=ARROW), True),
        (pd.Series(["a", "b", "b"], dtype=ARROW), False),
        (pd.Series(["a", None, "b"], dtype=ARROW), False),
        (pd.Series(["a"], dtype=ARROW), True),
        (pd.Series([], dtype=ARROW), True),
        # As Python compares text, by code points, also beyond those of two bytes.
        (pd.Series(["\uffff", "\U00010000"]), True),
        (pd.Series(["\uffff", "\U00010000"], dtype=ARROW), True),
    ],
)
def test_ids_areis_ascending_if_each_is_greater_than_the_one_before(ids: pd.Series, ascending: bool) -> None:
    assert is_ascending(ids) is ascending


@pytest.mark.parametrize("dtype", [object, ARROW])
@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 0, 2], [1, 0, 2, 3]])
@pytest.mark.parametrize("answered", [[0, 1, 2, 3], [2, 3, 1, 0]])
def test_align_is_the_same_with_and_without_sorting(dtype: Any, order: list[int], answered: list[int]) -> None:
    ids = np.array(["a", "b", "c", "d"], dtype=object)
    submission = pd.DataFrame({"p": order, "id": pd.Series(ids[order], dtype=dtype), "t": pd.Series(ids[order])})
    answers = pd.DataFrame({"id": pd.Series(ids[answered], dtype=dtype), "y": answered}).set_axis([9, 8, 7, 6])
    given, wanted = align(submission, answers, "id", ["p"])
    for frame_, column in ((given, "p"), (wanted, "y")):
        assert frame_["id"].tolist() == list("abcd")
        assert frame_[column].tolist() == [0, 1, 2, 3]
        assert list(frame_.index) == [0, 1, 2, 3]
    assert list(given.columns) == ["p", "id", "t"]
    assert given["t"].tolist() == list("abcd")


def test_numbers_in_the_order_of_the_answers_need_no_places() -> None:
    answers = pd.DataFrame({"id": [3, 5, 8], "y": [1.0, 2.0, 3.0]})
    submission = answers.rename(columns={"y": "p"}).set_index(pd.Index([7, 1, 4]))
    given, wanted, rows = locate(submission, answers, "id", ["p"])
    assert rows is None
    assert list(given.index) == list(wanted.index) == [0, 1, 2]
    assert given["p"].tolist() == wanted["y"].tolist()
    assert list(submission.index) == [7, 1, 4]
    *_, rows = locate(submission.iloc[::-1], answers, "id", ["p"])
    assert rows is not None
    assert rows.tolist() == [2, 1, 0]


@pytest.mark.parametrize("dtype", [object, ARROW])
@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 0, 2]])
@pytest.mark.parametrize("repeated", [False, True])
def test_locate_says_where_each_answers_row_is(dtype: Any, order: list[int], repeated: bool) -> None:
    ids = np.array(["b", "a", "c", "c" if repeated else "d"], dtype=object)
    submission = pd.DataFrame({"id": pd.Series(ids[order], dtype=dtype), "p": ids[order]})
    answers = pd.DataFrame({"id": pd.Series(ids, dtype=dtype), "y": ids})
    given, wanted, rows = locate(submission, answers, "id", ["p"])
    assert (rows is None) == repeated, "they are sorted then"
    places = range(4) if rows is None else rows
    assert given["p"].to_numpy()[places].tolist() == wanted["y"].tolist()
    matched, _ = match(submission, answers, "id", ["p"])
    assert matched["p"].tolist() == wanted["y"].tolist()
    with pytest.raises(InvalidSubmission):
        locate(submission.assign(id="x"), answers, "id", ["p"])
    with pytest.raises(InvalidSubmission):
        locate(submission.drop(columns="p"), answers, "id", ["p"])
