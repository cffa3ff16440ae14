"""Ranks are those of SciPy, of any type of value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import rankdata

from competitions.scoring.metrics.ranks import average_ranks, average_ranks_of_rows

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(RNG.random(1000), id="distinct"),
        pytest.param(RNG.integers(0, 5, 1000) / 7, id="ties"),
        pytest.param(RNG.choice([0.0, -0.0, 5e-324, -5e-324], 500), id="zeros"),
        pytest.param(RNG.choice([np.inf, -np.inf, 1e308, 1.0], 500), id="infinite"),
        pytest.param(RNG.random(500) < 0.5, id="booleans"),
        pytest.param(RNG.integers(0, 1 << 63, 500, dtype=np.uint64) * np.uint64(2), id="beyond signed numbers"),
        pytest.param(RNG.random(500).astype(np.float32), id="single precision"),
        pytest.param(RNG.choice(np.array(["a", "B", "é", ""], dtype=object), 500), id="text"),
        pytest.param(np.full(300, 2.0), id="equal"),
        pytest.param(np.array([3.0]), id="one"),
        pytest.param(np.zeros(0), id="none"),
    ],
)
def test_ranks_are_those_of_scipy(values: Any) -> None:
    np.testing.assert_array_equal(average_ranks(values), rankdata(values))


def test_text_and_numbers_have_no_order() -> None:
    with pytest.raises(TypeError):
        average_ranks(np.array(["a", 1], dtype=object))


@pytest.mark.parametrize("shape", [(5, 300), (1, 4), (300, 1), (3, 0), (0, 3)])
def test_ranks_of_rows_are_those_of_each(shape: tuple[int, int]) -> None:
    for values in (RNG.random(shape), RNG.integers(0, 4, shape) / 3, RNG.choice([0.0, -0.0, np.inf, -np.inf], shape)):
        expected = np.array([average_ranks(row) for row in values]).reshape(shape)
        np.testing.assert_array_equal(average_ranks_of_rows(values), expected)
