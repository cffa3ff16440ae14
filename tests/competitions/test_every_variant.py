"""Every competition has small variants that pass the checks, or docs/variants.md says why it has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from competitions import registry
from tests.docs.variants import DOCUMENT, checked, row, rows_in
from tests.prepared import PreparedCompetitions


@pytest.mark.parametrize("competition_id", registry.list())
def test_variants_pass_the_checks_and_are_documented(
    competition_id: str, prepared: PreparedCompetitions, tmp_path: Path
) -> None:
    results = checked(prepared[competition_id], tmp_path)
    assert not [result for result in results if result.verdict == "failed"]
    documented = rows_in(DOCUMENT.read_text("utf-8")).get(competition_id)
    assert documented == row(competition_id, results), "update docs/variants.md: python -m tests.docs.variants"


def test_most_competitions_have_variants() -> None:
    rows = rows_in(DOCUMENT.read_text("utf-8"))
    assert sorted(rows) == sorted(registry.list())
    assert sum(" | yes | " in row for row in rows.values()) >= 75
