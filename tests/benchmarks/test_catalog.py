"""Miniatures made larger: more rows and files under new ids, which can be prepared and graded."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks import catalog
from benchmarks.catalog import Cost, Rows, download_of, grading, measured, preparing, submission_of
from benchmarks.enlarged import downloads, renamings
from competitions import registry

GRADED = Cost("a", 20_000, 1_000_000, seconds=0.5, memory=1_000_000, peak=150_000_000, enlarged=True, parsing=0.01)


def test_tables_and_the_files_that_they_name_get_new_ids(tmp_path: Path) -> None:
    raw, larger = tmp_path / "raw.zip", tmp_path / "larger.zip"
    with zipfile.ZipFile(raw, "w") as archive:
        archive.writestr("train.csv", "id,label\na1,0\nb2,1\n")
        archive.writestr("classes.json", "{}")
        for name in ("a1", "b2"):
            archive.writestr(f"train/{name}.jpg", name)
        for number in range(6):
            archive.writestr(f"test/{number}.png", f"{number}")
    size = sum(info.file_size for info in zipfile.ZipFile(raw).infolist())
    ways = [path for path, _ in downloads(raw, larger, 3 * size)]
    assert ways == [larger, larger, raw]
    path, found = next(downloads(raw, larger, 3 * size))
    with zipfile.ZipFile(path) as archive:
        table = pd.read_csv(archive.open("train.csv"))
        names = {Path(name) for name in archive.namelist()}
    assert table["id"].is_unique
    assert (len(table), table["label"].tolist()) == (6, [0, 1] * 3)
    assert {name.stem for name in names if name.match("train/*.jpg")} == set(table["id"])
    assert len([name for name in names if name.match("test/*.png")]) == 18
    assert (found.rows, found.files) == (6, 6 + 18 + 1)


def test_numbers_stay_numbers() -> None:
    (rename,) = renamings(["7", "12"])
    assert [rename("7", number) for number in (1, 2)] == ["20", "33"]


@pytest.mark.parametrize(
    ("change", "too_much"),
    [
        ({}, True),
        ({"seconds": 0.3}, False),
        ({"parsing": 0.2}, False),  # hardly more than reading the files
        ({"enlarged": False}, False),
        ({"seconds": 0.3, "peak": 2_000_000_000}, True),
    ],
)
def test_a_grader_may_take_two_seconds_or_four_times_parsing(change: dict[str, Any], too_much: bool) -> None:
    assert replace(GRADED, **change).too_much is too_much


def test_a_download_is_measured(tmp_path: Path) -> None:
    cost = measured(partial(download_of, "spaceship-titanic", tmp_path, "v1", 600_000), preparing)
    assert cost.enlarged
    assert cost.entries >= 7_000
    assert cost.seconds > 0
    assert f"{cost.entries:,}" in str(cost)


def test_a_submission_is_measured(tmp_path: Path) -> None:
    cost = measured(partial(submission_of, "spaceship-titanic", tmp_path, "v1", Rows(11_000), "plain"), grading)
    assert cost.enlarged
    assert 7_000 <= cost.entries <= 11_000
    assert cost.seconds > 0
    assert cost.peak > cost.memory


def test_answers_may_have_fewer_rows_than_a_submission(tmp_path: Path) -> None:
    """As of customers, of whom few buy anything."""
    rows = Rows(submission=4_000, answers=1_000)
    subject = submission_of("h-and-m-personalized-fashion-recommendations", tmp_path, "v1", rows, "plain", way=0)
    submission, answers = pd.read_csv(subject.path), pd.read_csv(next(subject.folder.rglob("answers.csv")))
    assert len(submission) == subject.rows > 3 * len(answers)
    assert set(answers["customer_id"]) <= set(submission["customer_id"])


def test_the_last_way_is_the_miniature(tmp_path: Path) -> None:
    subject = submission_of("spaceship-titanic", tmp_path, "v1", Rows(11_000), "plain", way=9)
    assert not subject.enlarged
    assert grading(subject) is not None


def test_every_competition_with_a_sheet_has_a_real_size() -> None:
    real = json.loads(Path(catalog.__file__).with_name("real_rows.json").read_text())
    assert set(real) == set(registry.list(split="all") + registry.list(split="dev"))
    assert all(each["rows"] > 0 and each["from"] for each in real.values())


@pytest.mark.parametrize("shape", catalog.SHAPES)
def test_a_submission_has_the_same_rows_in_each_shape(shape: str, tmp_path: Path) -> None:
    table = pd.DataFrame({"id": [f"{number:02}x" for number in range(30)], "text": ['a "b", c', "d"] * 15})
    path = tmp_path / "submission.csv"
    catalog.SHAPES[shape](table, path)
    found = pd.read_csv(path)[["id", "text"]]
    pd.testing.assert_frame_equal(found.sort_values("id", ignore_index=True), table)
    plain = tmp_path / "plain.csv"
    catalog.SHAPES["plain"](table, plain)
    assert (path.read_bytes() == plain.read_bytes()) == (shape == "plain")
