"""What must hold for every competition of the catalog, whatever it is about: the checks of `mlebench check`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import pytest
from _pytest.mark import ParameterSet

from competitions import registry
from competitions.editions import EDITIONS, Edition
from competitions.tables import columns
from grading.competition_checks.checks import CHECKS, Subject
from tests.parity.editions import fixed_in_v2
from tests.prepared import PreparedCompetitions

LONG_CHECKS = ("hostile", "validity")
SHAPES = {
    "spaceship-titanic",  # one label a row
    "leaf-classification",  # class probabilities
    "dogs-vs-cats-redux-kernels-edition",  # images
    "mlsp-2013-birds",  # sounds, several labels
    "tweet-sentiment-extraction",  # text
    "AI4Code",  # one JSON file an example
    "uw-madison-gi-tract-image-segmentation",  # masks
    "siim-covid19-detection",  # boxes
}
"""One competition of each shape: `make test` checks these, and `make test-all` the others."""
ALL = [registry.get(name) for name in registry.list()]


def cases() -> Iterator[ParameterSet]:
    """Every check in edition v1, and in v2 where that fixes something; the long ones only where it fixes the grader."""
    for competition in ALL:
        prepares, grades = (fixed_in_v2(competition, part) for part in ("prepare", "grade"))
        marks = [] if competition.id in SHAPES else [pytest.mark.slow]
        for check in CHECKS:
            yield pytest.param(competition.id, "v1", check, marks=marks)
            if grades or (prepares and check not in LONG_CHECKS):
                yield pytest.param(competition.id, "v2", check, marks=marks)


@pytest.fixture(scope="module")
def subject_of(prepared: PreparedCompetitions) -> Callable[[str, Edition], Subject]:
    """The checks of a competition look at one subject, as those of `mlebench check` do."""

    @lru_cache(maxsize=len(EDITIONS))
    def subject(competition_id: str, edition: Edition) -> Subject:
        prepared_competition = prepared.get(competition_id, edition)
        return Subject(prepared_competition.competition, prepared_competition.path, edition)

    return subject


@pytest.mark.parametrize(("competition_id", "edition", "check"), cases())
def test_every_competition(
    competition_id: str,
    edition: Edition,
    check: str,
    subject_of: Callable[[str, Edition], Subject],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if edition == "v2":  # miniatures are small; both ways of reading are tried
        monkeypatch.setattr(columns, "SMALL", 0)
    assert not CHECKS[check](subject_of(competition_id, edition))
