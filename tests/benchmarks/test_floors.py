"""The floor of preparing creates the files of the dataset, byte for byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.floors import floor
from benchmarks.published import prepare_cases
from storage.datasets.commit import DESCRIPTION


@pytest.mark.parametrize(
    "competition_id",
    ["histopathologic-cancer-detection", "dogs-vs-cats-redux-kernels-edition", "siim-covid19-detection"],
)
def test_the_floor_creates_the_same_files(competition_id: str, tmp_path: Path) -> None:
    prepare_cases.make(competition_id, tmp_path / "raw.zip", np.random.default_rng(0), 0.01)
    found = floor(competition_id, tmp_path / "raw.zip", tmp_path / "work")
    (folder,) = (tmp_path / "work").iterdir()
    prepared, floored = (
        {
            path.relative_to(folder / tree): path.read_bytes()
            for part in ("public", "private")
            for path in (folder / tree / part).rglob("*")
            if path.is_file() and path.name != DESCRIPTION
        }
        for tree in ("prepared", "floor")
    )
    assert prepared == floored
    assert found.files == len(prepared)
    assert found.bytes == sum(map(len, prepared.values()))
