"""docs/new_competitions.md says what is proposed for the catalog: compared here for one competition of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.proposals import BEGIN, DOCUMENT, measured
from tests.prepared import PreparedCompetitions

IDS = (
    "dog-breed-identification",
    "iwildcam-2020-fgvc7",
    "siim-covid19-detection",
    "us-patent-phrase-to-phrase-matching",
    "ventilator-pressure-prediction",
)


@pytest.mark.parametrize("competition_id", IDS)
def test_the_documented_proposal(competition_id: str, prepared: PreparedCompetitions, tmp_path: Path) -> None:
    documented = DOCUMENT.read_text("utf-8").partition(BEGIN)[2]
    row = measured(prepared[competition_id], tmp_path).row
    assert row in documented, "update docs/new_competitions.md: python -m tests.docs.proposals"
