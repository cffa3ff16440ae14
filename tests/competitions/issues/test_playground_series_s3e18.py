"""Probes of Explore Multi-Label Classification with an Enzyme Substrate Dataset."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
)


def test_answers_with_features(v1: World, v2: World) -> None:
    """Graders need two labels; v1 gives them the features as well."""
    assert set(v1.table("train.csv")) == set(v1.private_columns)
    assert v2.private_columns == ["id", "EC1", "EC2"]
