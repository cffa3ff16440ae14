"""The benchmark of growth leaves no metric out."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import scaling
from tests.competitions.scoring.metrics.test_every_metric import TESTED


def test_every_metric_is_measured_unless_its_input_does_not_grow() -> None:
    measured = {name.partition(" ")[0] for name in scaling.METRICS}
    assert {tested.name for tested in TESTED} <= measured | set(scaling.CONSTANT)
    assert not measured & set(scaling.CONSTANT)


@pytest.mark.parametrize("name", scaling.MEASURED)
def test_each_has_an_input_of_any_size(name: str) -> None:
    make, _ = scaling.MEASURED[name]
    for rows in (40, 160):
        make(np.random.default_rng(0), rows)()
