"""The two editions of the competition that a module of probes is named for."""

from __future__ import annotations

from pathlib import Path

import pytest

from competitions import registry
from tests.competitions.issues._probe import World
from tests.prepared import PreparedCompetitions

BY_MODULE = {name.replace("-", "_").lower(): name for name in registry.list()}


def competition_of(module: str) -> str:
    """The competition of a module of probes: `test_leaf_classification` is about leaf-classification."""
    return BY_MODULE[module.rpartition(".")[2].removeprefix("test_")]


@pytest.fixture
def v1(request: pytest.FixtureRequest, prepared: PreparedCompetitions, tmp_path: Path) -> World:
    """The miniature in edition v1."""
    return World(prepared.get(competition_of(request.module.__name__), "v1"), tmp_path)


@pytest.fixture
def v2(request: pytest.FixtureRequest, prepared: PreparedCompetitions, tmp_path: Path) -> World:
    """The miniature in edition v2."""
    return World(prepared.get(competition_of(request.module.__name__), "v2"), tmp_path)
