"""The competitions that are made for measurements are read as those of users are."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import competition
from competitions.competition import Competition


@pytest.mark.parametrize("competition_id", competition.PREPARE)
def test_its_description_is_valid(competition_id: str, tmp_path: Path) -> None:
    assert Competition.load(competition.make(tmp_path, competition_id)).id == competition_id
