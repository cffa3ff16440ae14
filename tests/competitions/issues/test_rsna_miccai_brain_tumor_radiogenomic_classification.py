"""Probes of RSNA-MICCAI Brain Tumor Radiogenomic Classification."""

from __future__ import annotations

from competitions.editions import EDITIONS
from tests.competitions.issues._probe import (
    World,
    remade,
)
from tests.competitions.issues._scans import scan


def test_faulty_patients(v1: World, v2: World) -> None:
    """The organisers said that the images of three patients are faulty."""

    def faulty(world: World) -> set[str]:
        patients = {path.name for part in ("train", "test") for path in (world.public / part).iterdir()}
        return patients & {"00109", "00123", "00709"}

    assert faulty(v1)
    assert not faulty(v2)


def test_original_ids(v1: World) -> None:
    """Kaggle's train_labels.csv has the labels of v1's patients, by the names of folders or in the headers of files."""
    known = v1.kaggle.read_csv("train_labels.csv", dtype={"BraTS21ID": str}).set_index("BraTS21ID")["MGMT_value"]
    names = [name for name in v1.kaggle.names("train") if name.endswith(".dcm")]
    parts = {name: name.split("/") for name in names}
    worlds = remade(v1, {name: scan(patient, series, file) for name, (_, patient, series, file) in parts.items()})

    def looked_up(world: World) -> float:
        ids = world.sample["BraTS21ID"]
        return float(ids.isin(known.index).mean())

    def in_headers(world: World) -> set[str]:
        found = set()
        for path in (world.public / "test").rglob("*.dcm"):
            content = path.read_bytes()
            found |= {patient for patient in known.index if f".{patient}.".encode() in content}
        return found

    assert [looked_up(worlds[each]) for each in EDITIONS] == [1.0, 0.0]
    assert in_headers(worlds["v1"])
    assert not in_headers(worlds["v2"])
    assert worlds["v2"].grade(worlds["v2"].perfect) == 1.0
    slices = [len(list((worlds[each].public / "test").rglob("*.dcm"))) for each in EDITIONS]
    assert slices[1] > 0
