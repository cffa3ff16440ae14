import random
from collections.abc import Sized
from pathlib import PurePosixPath

from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download

UID = "StudyInstanceUID"
LABELS = ["patient_overall", "C1", "C2", "C3", "C4", "C5", "C6", "C7"]


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    table, boxes = raw.read_csv("train.csv"), raw.read_csv("train_bounding_boxes.csv")
    for name, checked, expected_columns in (
        ("train.csv", table, [UID, *LABELS]),
        ("train_bounding_boxes.csv", boxes, [UID, "x", "y", "width", "height", "slice_number"]),
    ):
        if list(checked.columns) != expected_columns:
            raise DownloadError(f"{name} should have the columns {', '.join(expected_columns)}; download it again")
    boxed = sorted(boxes[UID].unique())
    segmented = sorted(PurePosixPath(name).stem for name in raw.glob("segmentations/*.nii"))
    in_both = [uid for uid in boxed if uid in set(segmented)]

    # Draw one tenth each of all studies, of those with boxes, of those with segmentations, and of those with both.
    rng = random.Random(0)
    drawn_both = rng.sample(in_both, _tenth(in_both))
    drawn_segmented = rng.sample([uid for uid in segmented if uid not in in_both], _tenth(segmented) - len(drawn_both))
    drawn_boxed = rng.sample([uid for uid in boxed if uid not in in_both], _tenth(boxed) - len(drawn_both))
    special = {*drawn_both, *drawn_segmented, *drawn_boxed}
    drawn = special.union(rng.sample([uid for uid in table[UID] if uid not in special], _tenth(table) - len(special)))

    # In v1 the tenth is the training part, although it was meant to be the test part.
    is_train = table[UID].isin(drawn) == (edition == "v1")  # v2 fixes train-and-test-swapped
    train, test = table[is_train], table[~is_train]
    with_boxes = {*drawn_both, *drawn_boxed} if edition == "v1" else set(train[UID])  # v2 fixes withheld-annotations
    # v2 fixes withheld-annotations
    with_masks = {*drawn_both, *drawn_segmented} if edition == "v1" else set(train[UID]).intersection(segmented)

    answers = test.melt(id_vars=UID, var_name="prediction_type", value_name="fractured")
    answers["row_id"] = answers[UID] + "_" + answers["prediction_type"]
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("train_bounding_boxes.csv", boxes[boxes[UID].isin(with_boxes)])
    out.private.table("answers.csv", answers)
    out.public.table("test.csv", answers.drop(columns="fractured"))
    out.public.table("sample_submission.csv", answers[["row_id"]].assign(fractured=0.5))
    out.public.copies(raw.each("segmentations/{}.nii", sorted(with_masks)))
    for part, rows in (("train_images", train), ("test_images", test)):
        for uid in rows[UID]:
            out.public.copy_tree(f"{part}/{uid}", raw, f"train_images/{uid}")
    return out


def _tenth(items: Sized) -> int:
    return round(len(items) * 0.1)
