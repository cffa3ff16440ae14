"""What must hold for every competition of the catalog, whatever it is about: the checks of `mlebench check`."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import pytest

from competitions import registry
from competitions.editions import Edition
from grading.selfcheck.checks import CHECKS, Subject
from tests.prepared import PreparedCompetitions

ALL = [registry.get(name) for name in registry.list()]


def cases() -> Iterator[tuple[str, Edition, str]]:
    """Every check in edition v1; in v2 where prepare.py or grade.py knows it, the slow one only where grade.py does."""
    for competition in ALL:
        knows = {part: "v2" in (competition.folder / f"{part}.py").read_text() for part in ("prepare", "grade")}
        for check in CHECKS:
            yield competition.id, "v1", check
            if knows["grade"] or (knows["prepare"] and check != "hostile"):
                yield competition.id, "v2", check


@pytest.mark.parametrize(("competition_id", "edition", "check"), cases())
def test_every_competition(competition_id: str, edition: Edition, check: str, prepared: PreparedCompetitions) -> None:
    found = prepared.get(competition_id, edition)
    manifest = pd.read_parquet(found.path / "manifest.parquet")
    assert not CHECKS[check](Subject(found.competition, found.path, manifest, edition))
