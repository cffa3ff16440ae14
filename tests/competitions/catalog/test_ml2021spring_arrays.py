"""Selections of rows of arrays must be the bytes that numpy.save writes."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from competitions import registry
from competitions.preparing.download import Download

arrays = registry.get("ml2021spring-hw2").module("arrays")
ARRAYS = {
    "matrix": np.random.default_rng(0).random((25_000, 3), dtype=np.float32),
    "text": np.array(["7", "38", ""] * 9),
    "no columns": np.zeros((4, 0)),
    "vector": np.arange(8),
}


@pytest.mark.parametrize("array", ARRAYS.values(), ids=list(ARRAYS))
def test_equals_numpy_save(tmp_path: Path, array: np.ndarray) -> None:
    np.save(tmp_path / "a.npy", array)
    download = Download.open(str(tmp_path))
    rows = np.random.default_rng(1).permutation(len(array))[: len(array) * 9 // 10]
    expected = io.BytesIO()
    np.save(expected, array[rows])
    assert arrays.array_length(download, "a.npy") == len(array)
    assert b"".join(arrays.array_content(arrays.read_array(download, "a.npy"), rows).pieces()) == expected.getvalue()


def test_length_of_a_newer_format(tmp_path: Path) -> None:
    with (tmp_path / "a.npy").open("wb") as file:
        np.lib.format.write_array(file, np.zeros((5, 2)), version=(2, 0))
    assert arrays.array_length(Download.open(str(tmp_path)), "a.npy") == 5
