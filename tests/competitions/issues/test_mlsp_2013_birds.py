"""Probes of MLSP 2013 Bird Classification Challenge."""

from __future__ import annotations

from tests.competitions.issues._probe import (
    World,
)

FEATURES = ["histogram_of_segments.txt", "segment_features.txt", "segment_rectangles.txt"]


def test_histogram_header(v1: World, v2: World) -> None:
    """The names of the features are the same in all three files, so nobody knows what their columns mean."""

    def headers(world: World) -> set[str]:
        return {(world.public / "supplemental_data" / name).read_text().splitlines()[0] for name in FEATURES}

    assert len(headers(v1)) == 1
    assert len(headers(v2)) == 3


def test_examples_of_test_recordings(v1: World, v2: World) -> None:
    """Segmentations that people drew of test recordings show where the birds are."""

    def drawn(world: World) -> int:
        folds = world.table("essential_data/CVfolds_2.txt").set_index("rec_id")["fold"]
        names = world.table("essential_data/rec_id2filename.txt").set_index("filename")["rec_id"]
        examples = (world.public / "supplemental_data/segmentation_examples").iterdir()
        return sum(folds[names[path.stem]] for path in examples)

    assert drawn(v1) > 0
    assert drawn(v2) == 0
