"""Probes of Statoil/C-CORE Iceberg Classifier Challenge."""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path

import py7zr

from tests.competitions.issues._probe import (
    World,
    remade,
)


def seven_zip(path: Path) -> bytes:
    with tempfile.TemporaryDirectory() as folder, py7zr.SevenZipFile(path) as archive:
        archive.extractall(folder)
        return next(file for file in Path(folder).rglob("*") if file.is_file()).read_bytes()


def test_sample_submission_packed(v1: World, v2: World) -> None:
    """Submissions are plain files, but v1 shows no plain example."""
    assert not (v1.public / "sample_submission.csv").exists()
    assert v2.accepts((v2.public / "sample_submission.csv").read_text())


def test_unknown_angles_in_test(v1: World, v2: World) -> None:
    """Only ships lack an angle here, so a missing one tells the class."""

    def right(world: World) -> tuple[int, int]:
        """How many test records lack an angle, and how many of these are ships."""
        records = json.loads(seven_zip(world.public / "test.json.7z"))
        lacking = {record["id"] for record in records if record["inc_angle"] == "na"}
        ships = set(world.truth.loc[world.truth["is_iceberg"] == 0, "id"])
        return len(lacking), len(lacking & ships)

    train = json.loads(v1.kaggle.archive("train.json.7z").read_bytes("data/processed/train.json"))
    angled = [{**r, "inc_angle": 40.0 if r["is_iceberg"] else "na"} for r in train]
    packed = io.BytesIO()
    with py7zr.SevenZipFile(packed, "w") as archive:
        archive.writestr(json.dumps(angled), "data/processed/train.json")
    worlds = remade(v1, {"train.json.7z": packed.getvalue()})
    lacking, ships = right(worlds["v1"])
    assert lacking == ships > 0
    assert right(worlds["v2"])[0] == 0
