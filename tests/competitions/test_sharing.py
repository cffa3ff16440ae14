"""Editions whose preparing is the same share one dataset: told by the code, listed in the facts, seen in miniatures."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from competitions import registry
from competitions.preparing.images import PARAMETER
from competitions.sharing import depends_on_edition
from tests.prepared import PreparedCompetitions

COMPETITIONS = [registry.get(name) for name in registry.list()]
SHARED = [each.id for each in COMPETITIONS if each.files_of("v2") == "v1"]


@pytest.mark.parametrize("competition_id", SHARED)
def test_the_miniatures_are_equal(competition_id: str, prepared: PreparedCompetitions) -> None:
    v1, v2 = (prepared.get(competition_id, edition).path / "manifest.parquet" for edition in ("v1", "v2"))
    assert pq.read_table(v1).equals(pq.read_table(v2))


def test_the_facts_say_where_the_files_differ() -> None:
    fixed = {
        each.id
        for each in COMPETITIONS
        if any(issue.v2 == "fixed" and "prepare" in issue.affects for issue in each.facts.known_issues)
    }
    by_parameter = {each.id for each in COMPETITIONS if PARAMETER in each.facts.params}
    assert {each.id for each in COMPETITIONS} - fixed - by_parameter == set(SHARED)
    assert all(each.files_of("v1") == "v1" for each in COMPETITIONS)


@pytest.mark.parametrize(
    ("code", "depends"),
    [
        ("def prepare(raw, edition, params):\n    return make(raw, params)", False),
        ("def prepare(raw, *, edition, params):\n    '''Of every edition.'''\n    return make(raw)", False),
        ("def prepare(raw, edition, params):\n    return make(raw, edition)", True),
        ("def prepare(raw, edition, params):\n    def inner():\n        return edition\n    return inner()", True),
        ("def prepare(raw, edition, params):\n    return make(**locals())", True),
        ("def prepare(raw, **given):\n    return make(given)", True),
        ("@wrapped\ndef prepare(raw, edition, params):\n    return make(raw)", True),
        ("from .other import prepare", True),
        ("def prepare(raw, edition, params):\n    return (", True),
    ],
)
def test_what_cannot_be_told_depends(code: str, depends: bool, tmp_path: Path) -> None:
    path = tmp_path / "prepare.py"
    path.write_text(code)
    assert depends_on_edition(path) is depends
