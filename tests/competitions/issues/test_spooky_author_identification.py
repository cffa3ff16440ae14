"""Probes of Spooky Author Identification."""

from __future__ import annotations

import math

import pytest

from tests.competitions.issues._probe import (
    World,
)

AUTHORS = ["EAP", "HPL", "MWS"]


def test_rows_not_rescaled(v1: World, v2: World) -> None:
    """Kaggle's own example sums to 0.99 and is refused."""
    thirds = v1.sample.assign(**dict.fromkeys(AUTHORS, "0.33"))
    assert v1.refusal(thirds)
    assert v2.grade(thirds) == pytest.approx(math.log(3))


def test_loose_tolerance(v1: World, v2: World) -> None:
    """A row may promise a hundred-thousandth more than everything, ten times what the code states."""
    true = v1.perfect[AUTHORS].astype(float)
    honest = true * 0.7 + 0.1
    more = v1.perfect.assign(**(honest * (1 + 1e-5)))
    assert v1.grade(more) < v1.grade(v1.perfect.assign(**honest)) - 5e-6
    assert v2.grade(more) == pytest.approx(v2.grade(v2.perfect.assign(**honest)), abs=1e-12)


def test_columns_by_position(v1: World, v2: World) -> None:
    """The right columns under the right names are refused if the id is not the first of them."""
    turned = v1.perfect[[*AUTHORS, "id"]]
    assert v1.refusal(turned)
    assert v2.grade(turned) == v2.grade(v2.perfect)
