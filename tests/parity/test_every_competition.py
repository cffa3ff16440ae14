"""What must hold for every competition of the catalog, whatever it is about: the checks of `mlebench check`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import pandas as pd
import pytest

from competitions import registry
from competitions.editions import EDITIONS, Edition
from competitions.tables import columns
from grading.selfcheck.checks import CHECKS, Subject
from tests.parity.editions import fixed_in_v2
from tests.prepared import PreparedCompetitions

SLOW = ("hostile", "validity")
ALL = [registry.get(name) for name in registry.list()]


def cases() -> Iterator[tuple[str, Edition, str]]:
    """Every check in edition v1, and in v2 where that fixes something; the slow one only where it fixes the grader."""
    for competition in ALL:
        prepares, grades = (fixed_in_v2(competition, part) for part in ("prepare", "grade"))
        for check in CHECKS:
            yield competition.id, "v1", check
            if grades or (prepares and check not in SLOW):
                yield competition.id, "v2", check


@pytest.fixture(scope="module")
def subject_of(prepared: PreparedCompetitions) -> Callable[[str, Edition], Subject]:
    """The checks of a competition look at one subject, as those of `mlebench check` do."""

    @lru_cache(maxsize=len(EDITIONS))
    def subject(competition_id: str, edition: Edition) -> Subject:
        found = prepared.get(competition_id, edition)
        return Subject(found.competition, found.path, pd.read_parquet(found.path / "manifest.parquet"), edition)

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
