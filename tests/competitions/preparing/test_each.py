"""Files that go by id: `Download.each`, and new names by `splits.anonymous`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from competitions.errors import DownloadError
from competitions.preparing.declaration import Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import anonymous


@pytest.fixture
def raw(tmp_path: Path) -> Download:
    for name in ("train/cat/1.jpg", "train/cat/2.jpg", "train/dog/3.jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    return Download.open(str(tmp_path))


def test_names_are_made_of_the_values_of_a_column(raw: Download) -> None:
    pairs = [(path, file.name) for path, file in raw.each("train/cat/{}.jpg", np.array([2, 1]), to="test/{}.jpg")]
    assert pairs == [("test/2.jpg", "train/cat/2.jpg"), ("test/1.jpg", "train/cat/1.jpg")]


def test_the_path_is_the_name_if_nothing_else_is_said(raw: Download) -> None:
    assert [path for path, _ in raw.each("train/cat/{}.jpg", ["1"])] == ["train/cat/1.jpg"]


def test_columns_side_by_side(raw: Download) -> None:
    table = pd.DataFrame({"kind": ["dog", "cat"], "file": ["3.jpg", "1.jpg"]})
    pairs = raw.each("train/{}/{}", table["kind"], table["file"], to="{0[0]}/{1}")
    assert [path for path, _ in pairs] == ["d/3.jpg", "c/1.jpg"]


def test_columns_of_unequal_length_are_a_mistake(raw: Download) -> None:
    with pytest.raises(ValueError, match="unequal length: 2, 1"):
        list(raw.each("train/{}/{}", ["dog", "cat"], ["3.jpg"]))


def test_a_missing_file_is_a_download_error(raw: Download) -> None:
    with pytest.raises(DownloadError, match=r"no file 'train/cat/9\.jpg'"):
        list(raw.each("train/cat/{}.jpg", [9]))


def test_feeds_trees(raw: Download) -> None:
    out = Preparation()
    out.public.copies(raw.each("train/cat/{}.jpg", [1, 2], to="{}.jpg"))
    out.public.archive("cats.zip", raw.each("train/cat/{}.jpg", [1, 2], to="{}.jpg"))
    assert list(out.public.operations) == ["1.jpg", "2.jpg", "cats.zip"]


def test_anonymous_rows_are_shuffled_and_can_be_traced_back_by_index() -> None:
    rows = pd.DataFrame({"id": [f"old{i}" for i in range(50)], "y": range(50)}, index=range(100, 150))
    new = anonymous(rows, "id", "test_{}")
    assert list(new["id"]) == [f"test_{i}" for i in range(50)]
    assert list(new["y"]) != list(rows["y"])
    assert (rows.loc[new.index, "y"] == new["y"]).all()
    assert list(rows["id"]) == [f"old{i}" for i in range(50)]


def test_the_order_of_anonymous_rows_depends_on_what_agents_do_not_know() -> None:
    rows = pd.DataFrame({"id": range(50), "y": 0})
    orders = [
        anonymous(rows, "id", "test_{}").index.tolist(),
        anonymous(rows.assign(y=[1, *[0] * 49]), "id", "test_{}").index.tolist(),
        anonymous(rows, "id", "test_{}", [f"{size}" for size in range(50)]).index.tolist(),
    ]
    assert anonymous(rows, "id", "test_{}").index.tolist() == orders[0]
    assert len({tuple(order) for order in orders}) == 3
