"""CSV text: byte for byte what pandas writes, whichever way it is made."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from competitions.tables import csv_text

WORDS = [
    "",
    "plain",
    "a,b",
    'say "x"',
    "two\nlines",
    "tab\there",
    "naïve",
    "\u2028",
    "\r",
    "a\rb,c",
    "  ",
    None,
    np.nan,
    pd.NA,
]


def equal(frame: pd.DataFrame, **options: Any) -> bool:
    options = {"index": False, **options}
    joined = b"".join(csv_text.pieces([frame], options))
    return joined == frame.to_csv(**options).encode("utf-8", "surrogatepass")


@given(arrays.arrays(np.float64, st.integers(1, 50), elements=st.floats(width=64)))
def test_any_float(values: np.ndarray) -> None:
    assert equal(pd.DataFrame({"a": values, "b": 1}))


def test_floats_of_all_sizes_and_digits() -> None:
    generator = np.random.default_rng(0)
    sizes = 10.0 ** generator.integers(-12, 18, 100_000)
    values = np.concatenate(
        [generator.uniform(-1, 1, 100_000) * sizes, (generator.normal(0, 1, 10_000) * 100).round(2)]
    )
    edges = [np.nextafter(edge, to) for edge in (1e-4, 1e-5, 1e10, 1e15, 1e16) for to in (0, edge, np.inf)]
    frame = pd.DataFrame({"a": np.concatenate([values, edges, [0.0, -0.0, np.inf, -np.inf, np.nan]])})
    assert csv_text._fast(frame.assign(b=frame["a"]), {"index": False}) is not None
    assert equal(frame.assign(b=frame["a"]))


FORMS = [*(f"%.{digits}{kind}" for digits in (1, 2, 6, 10, 15) for kind in "gf"), "%.17g", "%.0f", "%.16f", "%e"]


@given(arrays.arrays(np.float64, st.integers(1, 50), elements=st.floats(width=64)), st.sampled_from(FORMS))
def test_any_float_in_a_format(values: np.ndarray, form: str) -> None:
    assert equal(pd.DataFrame({"a": values, "b": 1, "c": "x"}), float_format=form)


@pytest.mark.parametrize("digits", range(1, 16))
def test_floats_rounded_to_significant_digits(digits: int) -> None:
    generator = np.random.default_rng(digits)
    some = generator.uniform(-1, 1, 20_000) * 10.0 ** generator.integers(-6, 12, 20_000)
    ties = (generator.integers(0, 10**digits, 5_000) + 0.5) * 10.0 ** generator.integers(-digits - 3, 3, 5_000)
    tens = 10.0 ** np.arange(-6, 16)
    edges = np.concatenate([tens, np.nextafter(tens, 0), np.nextafter(tens, np.inf), tens * (1 - 10.0**-digits / 2)])
    values = np.concatenate([some, ties, some.round(3), edges, [0.0, -0.0, np.inf, -np.inf, np.nan]])
    frame = pd.DataFrame({"a": values, "b": "x"})
    assert csv_text._fast(frame, {"index": False, "float_format": f"%.{digits}g"}) is not None
    assert equal(frame, float_format=f"%.{digits}g")


@pytest.mark.parametrize("places", range(1, 16))
def test_floats_rounded_to_decimal_places(places: int) -> None:
    generator = np.random.default_rng(places)
    some = generator.uniform(-1, 1, 20_000) * 10.0 ** generator.integers(-12, 18, 20_000)
    ties = (generator.integers(-99_999, 99_999, 5_000) + 0.5) / 10.0 ** generator.integers(0, places + 2, 5_000)
    exact = generator.integers(-(10**6), 10**6, 5_000) / 2.0 ** generator.integers(1, 20, 5_000)
    tens = 10.0 ** np.arange(-17, 18)
    near = [tens, np.nextafter(tens, 0), np.nextafter(tens, np.inf), tens * (1 - 10.0**-places / 2), tens / 2]
    values = np.concatenate([some, ties, exact, some.round(3), *near, [0.0, -0.0, np.inf, -np.inf, np.nan]])
    frame = pd.DataFrame({"a": values, "b": "x", "c": -values})
    assert csv_text._fast(frame, {"index": False, "float_format": f"%.{places}f"}) is not None
    assert equal(frame, float_format=f"%.{places}f")


@given(
    st.lists(
        st.one_of(st.sampled_from(WORDS), st.text(st.characters(codec="utf-8"), max_size=8)), min_size=1, max_size=30
    )
)
def test_any_text(values: list) -> None:
    frame = pd.DataFrame({"a": pd.Series(values, dtype=object), "b": range(len(values))})
    for options in ({}, {"sep": "\t"}, {"quoting": csv.QUOTE_NONNUMERIC}, {"quoting": csv.QUOTE_MINIMAL}):
        assert equal(frame, **options)


def test_marks_of_all_kinds_are_written_without_pandas() -> None:
    frame = pd.DataFrame({"a": [*WORDS] * 3, "b": 1.5, "c": True})
    for options in ({}, {"sep": "\t"}, {"quoting": csv.QUOTE_NONNUMERIC}):
        assert csv_text._fast(frame, {"index": False, **options}) is not None
        assert equal(frame, **options)
    assert csv_text._fast(frame, {"index": False, "quoting": csv.QUOTE_ALL}) is None
    assert equal(frame, quoting=csv.QUOTE_ALL)


def test_missing_numbers_between_quotes() -> None:
    frame = pd.DataFrame({"a": [1.5, np.nan, -0.0, 1e300], "b": [1, 2, 3, 4], "c": [True, False, True, False]})
    assert equal(frame, quoting=csv.QUOTE_NONNUMERIC)
    assert equal(frame, quoting=csv.QUOTE_NONNUMERIC, float_format="%.3g")


@pytest.mark.parametrize(
    "column",
    [
        [True, False, True],
        pd.array([1, None, 3], dtype="Int64"),
        pd.Categorical(["x", None, "y,z"]),
        pd.to_datetime(pd.Series(["2020-01-01 00:00", None, "2020-01-02 03:00"])).array,
        [1, "one", None],
        [b"bytes", "text", None],
        [["a", "list"], {"a": "dict"}, ()],
        np.array([1.5, np.nan, 1e-9], dtype=np.float32),
        np.array([1, 255, 0], dtype=np.uint8),
        [2**70, 1, None],
        ["\ud800", "a", "b"],
        ["carriage\rreturn", "a", "b"],
        [None, np.nan, None],
    ],
)
def test_every_type_of_column(column: Any) -> None:
    assert equal(pd.DataFrame({"a": column, "b": [1, 2, 3]}))
    assert equal(pd.DataFrame({"a": column}))


def test_columns_that_share_a_name_and_odd_headers() -> None:
    frame = pd.DataFrame([[1, "x", 2.5]], columns=["a", "a", 'b,"c"'])
    assert equal(frame)
    assert equal(frame, header=False)
    assert equal(frame, header=["p", "q", "r"])
    assert equal(frame, index=True)
    assert equal(frame, float_format="%.3f")
    assert equal(frame.iloc[:0])


def test_slices_end_where_pandas_ends_its_own() -> None:
    # In one of pandas' slices all times are midnight, in the next they are not: that decides how they are written.
    times = pd.Series(pd.date_range("1900-01-01", periods=80_000, freq="D"))
    times.iloc[-1] += pd.Timedelta(hours=1)
    frame = pd.DataFrame({"a": times, "b": 1, "c": 2})
    assert len(list(csv_text.slices(frame))) > 1
    assert equal(frame)


def test_few_pieces_are_in_memory_at_one_time() -> None:
    made = 0

    def frames() -> Iterator[pd.DataFrame]:
        nonlocal made
        for _ in range(100):
            made += 1
            yield pd.DataFrame({"a": [1], "b": ["x"]})

    pieces = csv_text.pieces(frames(), {"index": False})
    next(pieces)
    assert made <= 10
    assert sum(1 for _ in pieces) == 99


def test_columns_of_arrow_text() -> None:
    chunks = [["a", None, 'b"', "c,d"], ["", "é\n", "x"], []]
    column = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array(chunks, pa.string())))
    frame = pd.DataFrame({"x": column, "y": range(len(column)), "z": column})
    for part in (frame, frame.iloc[2:6], frame.iloc[[5, 0, 5]], frame.iloc[:0]):
        assert equal(part)
    assert csv_text._fast(frame, {"index": False}) is not None
