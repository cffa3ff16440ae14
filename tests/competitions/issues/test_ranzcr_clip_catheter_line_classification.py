"""Probes of RANZCR CLiP - Catheter and Line Position Challenge."""

from __future__ import annotations

from tests.competitions.issues._probe import World, names_are_known, remade, table_bytes

MISSING = ["CVC - Normal", "Swan Ganz Catheter Present"]


def test_nine_of_eleven_labels(v1: World, v2: World) -> None:
    """Two findings may be left to chance."""
    for world, counts in ((v1, False), (v2, True)):
        right = world.perfect
        wrong = right.assign(**{name: 1 - right[name].astype(float).astype(int) for name in MISSING})
        assert set(MISSING) <= set(world.table("train.csv"))
        assert (world.grade(wrong) < world.grade(right)) == counts


def test_patients_on_both_sides(v1: World, v2: World) -> None:
    """A tube that was seen in one image of a patient is in the others, too."""
    table = v1.kaggle.read_csv("train.csv")
    table["PatientID"] = [f"patient {row // 4}" for row in range(len(table))]
    worlds = remade(v1, {"train.csv": table_bytes(table)})

    def known(world: World) -> float:
        return float(world.truth["PatientID"].isin(world.table("train.csv")["PatientID"]).mean())

    assert known(worlds["v1"]) > 0.5
    assert known(worlds["v2"]) == 0


def test_original_names(v1: World, v2: World) -> None:
    """Kaggle's train.csv has the labels of v1's test images by their names, and none of v2's."""
    names_are_known(v1, v2, "StudyInstanceUID", v1.kaggle.read_csv("train.csv")["StudyInstanceUID"])
