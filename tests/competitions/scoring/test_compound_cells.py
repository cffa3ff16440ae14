"""Cells that list objects (detections) or the runs of masks."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from competitions.scoring.compound_cells import labelled_columns, labelled_numbers, plain_numbers, rle_masks
from grading import InvalidSubmission


def column(*cells: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO("id,c\n" + "".join(f'{i},"{cell}"\n' for i, cell in enumerate(cells))))


def rejected(*cells: str, **options: Any) -> str:
    with pytest.raises(InvalidSubmission) as caught:
        labelled_numbers(column(*cells), "c", 2, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_label_first_and_label_last() -> None:
    assert labelled_numbers(column("a 1 2 b 3 4", "a 5 6"), "c", 2) == [[("a", [1, 2]), ("b", [3, 4])], [("a", [5, 6])]]
    assert labelled_numbers(column("1 2 a"), "c", 2, label_last=True) == [[("a", [1.0, 2.0])]]


def test_white_space_or_single_separators() -> None:
    assert labelled_numbers(column("  a   1\t2 "), "c", 2) == [[("a", [1.0, 2.0])]]
    assert "4 values" in rejected("a  1 2", separator=" ")
    assert "not convert" in rejected("a  1 2 3 4", separator=" ")


def test_empty_and_blank_cells() -> None:
    assert labelled_numbers(column("a 1 2", "", "  "), "c", 2, separator=" ", missing="") == [[("a", [1, 2])], [], []]
    assert labelled_numbers(column("a 1 2", "  "), "c", 2) == [[("a", [1, 2])], []]
    assert "empty cell" in rejected("a 1 2", "")
    assert "2 values" in rejected("a 1 2", " ", separator=" ")


def test_numbers_are_those_of_python() -> None:
    [[(_, values)]] = labelled_numbers(column("a 1_0 -inf"), "c", 2)
    assert values == [10, -math.inf]
    message = rejected("a 1 2", "a 1 " + "x" * 10_000)
    assert message.startswith("`c` of id '1': could not convert")
    assert len(message) < 150


ODD = (
    *("a 1 2 b 3 4", "a 0.1 -2.5e-3", "a 5. -.5", "a +1 .5", "a 1e400 5", "a 1e-400 -0.0", "a 1E5 1e+22"),
    *("a 179769313486231580793728971405303415079934132710037826936173778980444968292764.5 4.9e-324", "- 1 2", "1 2 3"),
    *("a 1 nan", "a -inf Infinity", "a 1_0 2", "a 0x10 1", "a 1e5e 2", "a . 1", "a 1 2,5", "a nan(1) 2", "a 1 ٣"),
    *("a  1 2", " a 1 2", "a 1 2 ", "a\t1 2", "a 1\xa02", "é 1 2", "a 1\x1c2", "a 1 2 b", "a 1", " ", ""),
)


@pytest.mark.parametrize("separator", [None, " ", ","])
@pytest.mark.parametrize("label_last", [False, True])
@pytest.mark.parametrize("missing", [None, "", "z 7 8"])
@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_arrays_and_lists_agree_on_every_cell(odd: str, missing: str | None, label_last: bool, separator: str) -> None:
    cells = ["b 0.25 3 c 4 5", odd, "a 1 2"]
    if label_last:
        cells = [" ".join([*cell.split(" ")[1:], cell.split(" ")[0]]) for cell in cells]
    frame = pd.DataFrame({"id": range(3), "c": pd.Series(cells, dtype=object)})
    options: dict[str, Any] = {"label_last": label_last, "separator": separator, "missing": missing}
    results: list[Any] = []
    for function in (labelled_numbers, labelled_columns):
        try:
            results.append(function(frame, "c", 2, **options))
        except InvalidSubmission as error:
            results.append(str(error))
    lists, arrays = results
    if not isinstance(lists, str):
        lists = [(row, label, *map(repr, numbers)) for row, cell in enumerate(lists) for label, numbers in cell]
        arrays = [
            (row, label, *map(repr, numbers))
            for row, label, numbers in zip(arrays.rows, arrays.labels, arrays.numbers.tolist(), strict=True)
        ]
    assert lists == arrays


def test_half_objects_and_numbers_are_rejected() -> None:
    assert rejected("a 1 2", "a 1") == "`c` of id '1' has 2 values; 3 are needed for each object."
    assert "must hold text" in rejected("1", "2")


def test_masks_are_decoded_with_the_size_of_each_row() -> None:
    masks = rle_masks(column("1 3", "", "2 9"), "c", [9, 9, 4], missing="")
    assert [mask.area for mask in masks] == [3, 0, 3]


@pytest.mark.parametrize(
    ("cells", "hint"),
    [
        (("1 3", "1 3 2 2"), "`c` of id '1': runs overlap"),
        (("1", "2"), "must hold text"),
        (("1 3", ""), "empty cell"),
    ],
)
def test_cells_without_a_mask_are_rejected(cells: tuple[str, ...], hint: str) -> None:
    with pytest.raises(InvalidSubmission, match=hint):
        rle_masks(column(*cells), "c", 9)


@pytest.mark.parametrize(
    "tokens",
    [
        [],
        ["1", "-2.5", "+3", ".5", "1.", "007", "1e3", "1E-3", "-0"],
        ["0.1", "0.30000000000000004", "12345678901234567890", "123456789012345678901234567890.5"],
        ["4.9e-324", "1e-400", "1.7976931348623157e308", "1e400", "-1e400"],
        ["nan", "NaN", "inf", "-Infinity", "1_000", " 7 ", "\u0663"],
    ],
)
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_plain_numbers_are_those_of_python(tokens: list[str], kind: pa.DataType) -> None:
    for some in (tokens, *([token] for token in tokens)):  # one of them decides how all are read
        found = plain_numbers(pa.array(some, kind))
        assert found.dtype == np.float64
        assert found.tobytes() == np.array([float(token) for token in some], np.float64).tobytes()


@pytest.mark.parametrize("wrong", ["", "-", "1e", "1..2", "1 2", "0x10", "nan(1)", "a"])
def test_plain_numbers_say_what_python_says(wrong: str) -> None:
    with pytest.raises(ValueError, match="could not convert") as expected:
        float(wrong)
    with pytest.raises(ValueError, match="could not convert") as caught:
        plain_numbers(pa.array(["1", wrong]))
    assert str(caught.value) == str(expected.value)


def test_plain_numbers_of_a_part_of_an_array() -> None:
    assert plain_numbers(pa.array(["x", "1", "2", "y"])[1:3]).tolist() == [1.0, 2.0]
