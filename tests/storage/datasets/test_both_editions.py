"""An edition that takes what it can from the dataset of the other one has the files that it gets alone."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from competitions import registry
from competitions.editions import Edition
from storage.datasets.job import Job, Recipe
from storage.datasets.materialise import materialise
from tests.parity.packs import members
from tests.prepared import PreparedCompetitions

pytestmark = pytest.mark.slow

DIFFERENT = [name for name in registry.list() if registry.get(name).files_of("v2") == "v2"]
"""Competitions of which v2 has other files than v1; of the others it has the same dataset."""


def job(prepared: PreparedCompetitions, name: str, out: Path, edition: Edition, **how: Any) -> Job:
    raw = prepared.packs / name / "raw.zip"
    params = prepared.get(name, "v1").params or {}
    recipe = Recipe(edition, "the download", "the code", params)
    return Job(name, str(raw), str(out), edition, params, key=out.name, recipe=recipe, **how)


def bytes_of(folder: Path) -> dict[str, str]:
    return {
        # The bytes of a 7z archive have the time at which it was made.
        path.relative_to(folder).as_posix(): repr(members(path))
        if path.suffix == ".7z"
        else hashlib.sha256(path.read_bytes()).hexdigest()
        for part in ("public", "private")
        for path in (folder / part).rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("name", DIFFERENT)
def test_both_editions_have_the_files_that_they_get_alone(
    prepared: PreparedCompetitions, name: str, tmp_path: Path
) -> None:
    first = job(prepared, name, tmp_path / "one", "v1")
    materialise(first)
    materialise(job(prepared, name, tmp_path / "two", "v2", like=first.out, like_edition="v1"))
    editions: tuple[tuple[Edition, str], ...] = (("v1", "one"), ("v2", "two"))
    for edition, folder in editions:
        assert bytes_of(tmp_path / folder) == bytes_of(prepared.get(name, edition).path)
