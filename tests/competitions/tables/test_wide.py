"""Wide tables of numbers, which are read at once, equal those of pandas, or are left to it."""

from __future__ import annotations

import csv as standard_csv
import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from common.concurrency import end_threads
from competitions.tables import columns, pieces, wide
from tests.competitions.tables.random_tables import FLOATS, HARD_NUMBERS, ODD, WHOLE, outcome, quoted, read, spelled

pytestmark = pytest.mark.usefixtures("small_pieces")


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("kinds", [FLOATS, WHOLE], ids=["floats", "whole"])
def test_wide_tables_of_numbers_are_those_of_pandas(
    kinds: list[Callable[[random.Random], str]], seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All columns at once, or one by one where there is a cell of another kind in any of them."""
    rng, path = random.Random(seed), tmp_path / "table.csv"
    at_once: list[bool] = []

    def numbers_of(*given: Any) -> pa.Table | None:
        found = wide.numbers_of(*given)
        at_once.append(found is not None)
        return found

    monkeypatch.setattr(columns, "numbers_of", numbers_of)
    monkeypatch.setattr(columns, "MANY", 2)
    monkeypatch.setattr(pieces, "PIECE", 2048)
    for number in range(40):
        chosen, start = [rng.choice(kinds) for _ in range(rng.randint(2, 30))], rng.choice(["a", "7", "x-0"])
        names = ["id", *(f"c{place}" for place in range(len(chosen)))]
        rows = [[f"{start}{row}", *(kind(rng) for kind in chosen)] for row in range(40)]
        if number % 2:
            rows[rng.randrange(len(rows))][rng.randrange(len(names))] = rng.choice([*HARD_NUMBERS, *ODD, "1" * 101])
        content = spelled([names, *rows], rng)
        path.write_bytes(content)
        found = read(path)
        if found is not None:
            expected = outcome(lambda: pd.read_csv(io.BytesIO(content), float_precision="round_trip"))  # noqa: B023
            assert isinstance(expected, pd.DataFrame), content
            pd.testing.assert_frame_equal(found, expected, check_exact=True, obj=repr(content))
            ours, pandas = (frame.select_dtypes(float).to_numpy() for frame in (found, expected))
            assert (np.signbit(ours) == np.signbit(pandas)).all()
    assert at_once.count(True) > 20


@pytest.mark.parametrize("spelling", [{"quoting": standard_csv.QUOTE_ALL}, {"lineterminator": "\r\n"}], ids=str)
def test_quotes_and_line_ends_of_wide_tables_cost_nothing(spelling: dict[str, Any], monkeypatch: Any) -> None:
    """The columns are not read as texts first."""
    table = pd.DataFrame(np.random.default_rng(0).random((50, 30)), columns=[f"c{place}" for place in range(30)])
    table.insert(0, "id", [f"x{row}" for row in range(50)])
    content = table.to_csv(index=False, **spelling).encode()
    inferred: list[pa.Array] = []
    end_threads()  # those of a test before may still parse what it left to pandas

    def column(strings: pa.Array, _: columns.Rules) -> pa.Array:
        inferred.append(strings)
        return strings

    monkeypatch.setattr(columns, "_column", column)
    monkeypatch.setattr(pieces, "PIECE", 1 << 20)
    found = columns.read_stream(io.BytesIO(content))
    assert found is not None
    pd.testing.assert_frame_equal(columns.frame(found, "object"), table, check_exact=True)
    assert len(inferred) == 1


@pytest.mark.parametrize(
    "odd", ['"a,1"', '"1\n2"', '"1\r\n2"', '1"2', '"1"2', '"1""2"', '""', '"', " 1", '" 1"', "1\r2", '"\ufeff"', "1\0"]
)
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_odd_cells_among_quoted_numbers_mean_what_they_mean_to_pandas(
    odd: str, place: int, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "MANY", 2)
    for always in (False, True):
        for row in range(3):
            rows = [[quoted("1", always), '"2"', quoted("3", always)] for _ in range(3)]
            rows[row][place] = odd
            content = end.join(["p,q,r", *map(",".join, rows), ""]).encode()
            found = columns.read_stream(io.BytesIO(content))
            if found is not None:
                expected = outcome(lambda: pd.read_csv(io.BytesIO(content), float_precision="round_trip"))  # noqa: B023
                assert isinstance(expected, pd.DataFrame), content
                pd.testing.assert_frame_equal(columns.frame(found, "object"), expected, obj=repr(content))
