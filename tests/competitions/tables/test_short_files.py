"""Short files read by splitting text equal those read with pandas, or are left to pandas."""

from __future__ import annotations

import random
from pathlib import Path

import pandas as pd
import pytest

from competitions.tables import short_files
from tests.competitions.tables.test_columns import HARD_NUMBERS, ODD, outcome, table


def simple_table(rng: random.Random) -> bytes:
    """Columns of one kind each."""
    kinds = [rng.choice(["text", "hard", "int", "float", "bool"]) for _ in range(rng.randint(2, 4))]
    lines = [",".join(f"c{number}" for number in range(len(kinds)))]
    for _ in range(rng.randint(1, 60)):
        cells = {
            "text": rng.choice([f"{rng.randint(0, 99)}_1", "naïve", " x", "y ", *rng.sample(ODD, 1)]),
            "hard": rng.choice(HARD_NUMBERS),
            "int": str(rng.randint(-(10 ** rng.randint(1, 19)), 10**6)),
            "float": repr(rng.random() * 10 ** rng.randint(-30, 30)),
            "bool": rng.choice(["True", "False", "true", "FALSE"]),
        }
        lines.append(",".join(cells[kind] for kind in kinds))
    return "\n".join(lines).encode()


@pytest.mark.parametrize("seed", range(20))
def test_the_result_is_that_of_pandas(seed: int, tmp_path: Path) -> None:
    rng, path, read = random.Random(seed), tmp_path / "table.csv", 0
    for number in range(100):
        content = table(rng) if number % 2 else simple_table(rng)
        path.write_bytes(content)
        found = short_files.read(path)
        if found is None:
            continue
        expected = outcome(lambda: pd.read_csv(path, float_precision="round_trip"))
        assert isinstance(expected, pd.DataFrame)
        pd.testing.assert_frame_equal(found, expected, check_exact=True)
        read += 1
    assert read, "the fast way is taken"


@pytest.mark.parametrize("cell", [*HARD_NUMBERS, *ODD, "18446744073709551616", "+7", "-9223372036854775808"])
def test_each_hard_cell_is_read_as_pandas_reads_it(cell: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    for others in (["1", "2"], ["0.5", "1e3"], ["a", "b"], ["True", "False"], []):
        path.write_text("\n".join(["id,p", *(f"x{row},{value}" for row, value in enumerate([*others, cell]))]), "utf-8")
        found = short_files.read(path)
        if found is not None:
            expected = pd.read_csv(path, float_precision="round_trip")
            pd.testing.assert_frame_equal(found, expected, check_exact=True)


def test_only_the_wanted_columns_are_read_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("id,p,q\na,,x\nb,2,\n")
    assert short_files.read(path) is None, "cells are missing"
    assert short_files.read(path, ["q", "id"]) is None
    path.write_text("id,p,q\na,,x\nb,2,y\n")
    found = short_files.read(path, ["other", "q", "id"])
    assert found is not None
    assert found.to_dict("list") == {"id": ["a", "b"], "q": ["x", "y"]}


@pytest.mark.parametrize("text", ["id,p\n", "id,p", "", "id\n1\n", "id,p\n1,2,3\n", "id,p\n1\n", "id,p\n1,2\n\n"])
def test_odd_shapes_are_left_to_pandas(text: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    assert short_files.read(path) is None
