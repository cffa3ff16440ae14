"""The parts of a column become one array, whatever their sizes, and the type that pandas infers."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from competitions.tables import parts
from competitions.tables.parts import Parts

MANY = 1 << 20  # rows


def joined(*arrays: pa.Array, pieces: float = 4, rows: int = MANY) -> pa.ChunkedArray | None:
    column = Parts(pieces)
    for array in arrays:
        column.add(array)
    return column.joined(rows)


@pytest.mark.parametrize("seed", range(5))
def test_texts_are_one_array_with_the_values_of_all(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_MIN_CAPACITY_BYTES", 1)
    rng = random.Random(seed)
    for _ in range(50):
        lists = [
            [rng.choice(["text", "é", "x" * rng.randint(1, 99), None]) for _ in range(rng.randint(1, 20))]
            for _ in range(rng.randint(1, 9))
        ]
        arrays = []
        for values in lists:
            sliced = pa.array(["before", *values, None], pa.string())[1:-1]
            arrays.append(pa.nulls(len(values), pa.float64()) if values == [None] * len(values) else sliced)
        column = joined(*arrays, pieces=rng.choice([1, 5, 100]))
        assert column is not None
        assert column.to_pylist() == [value for values in lists for value in values]
        if column.type == pa.string():
            assert column.num_chunks == 1
            column.validate(full=True)
        else:
            assert column.null_count == len(column), "all cells are missing"


@pytest.mark.parametrize("seed", range(5))
def test_numbers_are_one_array_with_the_values_of_all(seed: int) -> None:
    rng = random.Random(seed)
    kinds = [
        (pa.int64(), lambda: rng.choice([7, -1, 2**53 + 1])),
        (pa.float64(), lambda: rng.choice([0.1, -0.0, 1e300])),
        (pa.float64(), lambda: rng.choice([0.1, None])),
        (pa.float64(), lambda: None),
    ]
    for _ in range(200):
        some = rng.sample(kinds, rng.randint(1, len(kinds)))
        arrays = [pa.array([7], pa.int64())]  # a column of numbers
        for kind, value in rng.choices(some, k=rng.randint(1, 9)):
            made = [value() for _ in range(rng.randint(0, 20))]
            arrays.insert(rng.randint(0, len(arrays)), pa.array([None, *made, None], kind)[1:-1])
        column = joined(*arrays, pieces=rng.choice([1, 5, 100]))
        assert column is not None
        assert column.num_chunks == 1
        column.validate(full=True)
        every = [value for array in arrays for value in array.to_pylist()]
        is_whole = all(array.type == pa.int64() for array in arrays)
        assert column.type == (pa.int64() if is_whole else pa.float64())
        assert column.to_pylist() == (every if is_whole else [None if v is None else float(v) for v in every])


def test_numbers_have_the_wider_type() -> None:
    whole, floats, missing = pa.array([1, 2]), pa.array([0.5]), pa.nulls(2, pa.float64())
    assert joined(whole, whole) == pa.chunked_array([whole, whole])
    for arrays in ([whole, floats], [floats, whole], [whole, missing]):
        column = joined(*arrays)
        assert column is not None
        assert column.type == pa.float64()
        assert column.to_pylist() == [
            None if value is None else float(value) for a in arrays for value in a.to_pylist()
        ]
    assert joined(pa.array([True]), pa.array([False])) == pa.chunked_array([[True, False]])


@pytest.mark.parametrize(
    "arrays",
    [
        [pa.array(["text"]), pa.array([1])],
        [pa.array([1]), pa.array(["text"])],
        [pa.array([True]), pa.array(["text"])],
        [pa.array([True]), pa.array([1.5])],
        [pa.array([True]), pa.nulls(1, pa.float64())],
        [pa.nulls(1, pa.float64()), pa.array(["text"]), pa.array([1]), pa.array(["text"])],
        [pa.array(["text"]), pa.array([1]), pa.array([2])],
        [pa.array([1]), pa.array([2]), pa.array(["text"]), pa.array([3])],
        [pa.array([1]), pa.array([2.5]), pa.array([True])],
    ],
)
def test_mixed_types_are_left_to_pandas(arrays: list[pa.Array]) -> None:
    assert joined(*arrays) is None


def test_a_column_without_parts_is_left_to_pandas() -> None:
    assert joined() is None


def test_rows_for_which_pandas_infers_a_type_begin_with_text_somewhere() -> None:
    text, digits = pa.array(["text", *["1"] * 99]), pa.array(["1"] * 100)
    assert joined(text, text, rows=100) is not None
    assert joined(text, digits, rows=200) is not None
    assert joined(text, digits, rows=100) is None, "pandas would read the second hundred as numbers"
    assert joined(text, pa.nulls(100, pa.float64()), rows=100) is not None


def test_more_text_than_one_array_holds_is_left_to_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_MAX_TEXT_BYTES", 10)
    assert joined(pa.array(["12345"]), pa.array(["6789x"])) is not None
    assert joined(pa.array(["12345"]), pa.array(["6789x", "0"]), pa.array(["1"])) is None
