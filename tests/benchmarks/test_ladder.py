"""The simulation of attackers: with the Ladder, they gain less than with plain answers."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.ladder import FAMILIES, Family, gains


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_attackers_gain_less_with_the_ladder(family: Family) -> None:
    def mean_gain(attack: str, ladder: bool) -> float:
        return float(np.mean([gains(family, attack, 40, 200, ladder, seed)[0] for seed in range(3)]))

    plain, told = ([mean_gain(attack, ladder) for attack in ("climb", "one row")] for ladder in (False, True))
    assert max(told) < 0.5
    assert sum(told) < sum(plain)


def test_an_honest_search_gains_on_private_rows() -> None:
    for ladder in (False, True):
        private = [gains(FAMILIES[0], "search", 40, 300, ladder, seed)[1] for seed in range(3)]
        assert np.mean(private) > 5
