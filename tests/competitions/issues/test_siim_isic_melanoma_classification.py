"""Probes of SIIM-ISIC Melanoma Classification."""

from __future__ import annotations

import re

from tests.competitions.issues._probe import (
    World,
)

RECORD = re.compile(rb"image_name\x12.\n.\n.(?P<image>ISIC_\d+).*?target\x12.\x1a.\n.(?P<label>.)", re.DOTALL)


def test_labels_in_test_records(v1: World, v2: World) -> None:
    """The records of the test images carry a field `target`."""

    def right(world: World) -> float:
        content = b"".join(path.read_bytes() for path in world.public.glob("tfrecords/test*"))
        found = {match["image"].decode(): match["label"][0] for match in RECORD.finditer(content)}
        return world.grade(world.sample.assign(target=world.sample["image_name"].map(found).fillna(0.5)))

    assert right(v1) == 1.0
    assert right(v2) == 0.5


def test_fast_float_parser(v1: World, v2: World) -> None:
    """Numbers of many digits come out different."""
    original = v1.kaggle.read_csv("train.csv").set_index("image_name")["age_approx"]

    def changed(world: World) -> int:
        ages = world.table("train.csv", float_precision="round_trip").set_index("image_name")["age_approx"].dropna()
        return int((ages != original[ages.index]).sum())

    assert changed(v1) > 0
    assert changed(v2) == 0


def test_patients_on_both_sides(v1: World, v2: World) -> None:
    """The patient of a test image is known from other images."""
    assert v1.shared("train.csv", "test.csv", "patient_id") > 0
    assert v2.shared("train.csv", "test.csv", "patient_id") == 0
