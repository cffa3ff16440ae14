"""The table of docs/feedback.md: what its lines say."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from benchmarks import parts
from tests.prepared import PreparedCompetitions

REAL = json.loads(Path(parts.__file__).with_name("real_rows.json").read_text())
DOCUMENT = Path(parts.__file__).parents[1] / "docs" / "feedback.md"


@pytest.mark.parametrize(
    ("competition_id", "says"),
    [
        ("rsna-miccai-brain-tumor-radiogenomic-classification", "| 59 | 59 | 18 | 41 | 0.24 | 0.16 | yes |"),
        ("champs-scalar-coupling", "| 8,501 | 465,900 | 2,550 | 5,951 | 0.02 | 0.013 | yes |"),
        ("vesuvius-challenge-ink-detection", "| - | - | - | - | no: 1 unit is too few |"),
        ("iwildcam-2019-fgvc6", "no: the images of a camera belong together"),
        ("spaceship-titanic", "known when it is prepared"),
    ],
)
def test_a_line(competition_id: str, says: str) -> None:
    assert says in parts.row(competition_id, 1.0, "", None, REAL[competition_id])


def test_the_document_has_the_line_of_every_competition() -> None:
    """Apart from the standard errors, which are measured."""
    lines = [line.split("|") for line in DOCUMENT.read_text().splitlines() if line.startswith("| ")]
    found = {cells[1].strip(): [*cells[2:6], cells[8]] for cells in lines if len(cells) == 10}
    for name, real in REAL.items():
        cells = parts.row(name, 1.0, "", None, real).split("|")
        assert found[name] == [*cells[2:6], cells[8]], name


def test_the_noise_is_that_of_a_half_right_submission(prepared: PreparedCompetitions) -> None:
    """Of labels that are right in half of the rows, and sometimes in the others: about a half."""
    deviation, mark, reason = parts.noise_of(prepared["cdiscount-image-classification-challenge"])
    assert (mark, reason) == ("", None)
    assert deviation == pytest.approx(0.5, rel=0.3)
    deviation, _, reason = parts.noise_of(prepared["iwildcam-2019-fgvc6"])
    assert math.isnan(deviation)
    assert "belong together" in str(reason)
