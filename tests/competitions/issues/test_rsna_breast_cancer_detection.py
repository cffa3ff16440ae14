"""Probes of RSNA Screening Mammography Breast Cancer Detection."""

from __future__ import annotations

from competitions.editions import EDITIONS
from tests.competitions.issues._probe import (
    World,
    cell,
    remade,
)
from tests.competitions.issues._scans import scan


def test_missing_scores_zero(v1: World, v2: World) -> None:
    """One blank cell, and everything else counts for nothing."""
    assert v1.grade(v1.perfect) == 1.0
    assert v1.grade(cell(v1.perfect, "cancer", "")) == 0.0
    assert "empty" in v2.refusal(cell(v2.perfect, "cancer", ""))


def test_infinite_predictions(v1: World, v2: World) -> None:
    """More certain than certain is certain."""
    assert v1.grade(cell(v1.perfect, "cancer", "inf", 1)) <= 1
    assert "infinite" in v2.refusal(cell(v2.perfect, "cancer", "inf", 1))


def test_original_ids(v1: World) -> None:
    """Kaggle's train.csv has the labels of v1's patients and images, by the names of files or by what is in them."""
    known = v1.kaggle.read_csv("train.csv")
    names = [
        f"train_images/{patient}/{image}.dcm" for patient, image in zip(known.patient_id, known.image_id, strict=True)
    ]
    scans = {name: scan(name.split("/")[1], "", name.split("/")[2].removesuffix(".dcm")) for name in names}
    breasts = known["patient_id"].astype(str) + "_" + known["laterality"]
    labels = known["cancer"].groupby(breasts).first()
    worlds = remade(v1, dict(scans))

    def traced(world: World) -> set[str]:
        """The fields of files by which a public image of the test set is found among Kaggle's."""
        found = set()
        for path in (world.public / "test_images").rglob("*.dcm"):
            content = path.read_bytes()
            for image in known.itertuples():
                found |= {"name"} if path.stem == str(image.image_id) else set()
                found |= {"folder"} if path.parent.name == str(image.patient_id) else set()
                found |= {"header"} if f".{image.patient_id}.1.{image.image_id}".encode() in content else set()
        return found

    looked_up = [worlds[each].sample["prediction_id"].map(labels).notna().mean() for each in EDITIONS]
    assert looked_up == [1.0, 0.0]
    assert traced(worlds["v1"]) == {"name", "folder", "header"}
    assert traced(worlds["v2"]) == set()
    assert worlds["v2"].grade(worlds["v2"].perfect) == 1.0
    own = worlds["v2"].table("test.csv")
    files = {path.relative_to(worlds["v2"].public).as_posix() for path in worlds["v2"].public.rglob("test_images/*/*")}
    assert files == {f"test_images/{each.patient_id}/{each.image_id}.dcm" for each in own.itertuples()}
