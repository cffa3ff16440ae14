import pandas as pd

from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out

from .columns import BOX

NO_FINDING = 14


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    table = raw.read_csv("train.csv")
    train, test = hold_out(table["image_id"].unique(), 0.1)
    if (len(train), len(test)) != (params["train_images"], params["test_images"]):
        raise DownloadError(f"train.csv has {len(train) + len(test)} images; is it complete?")
    is_test = table["image_id"].isin(test)
    # The first box of each finding in an image stands in for a consensus of the radiologists.
    answers = table[is_test].groupby(["image_id", "class_id"], as_index=False).first()
    answers = answers[["image_id", "class_id", "class_name", "rad_id", *BOX]].fillna(0)
    answers.loc[answers["class_id"] == NO_FINDING, ["x_max", "y_max"]] = 1.0
    text = answers["class_id"].astype(str) + " 1.0"
    for side in BOX:
        text += " " + answers[side].astype(str)
    gold = text.rename("PredictionString").groupby(answers["image_id"]).agg(" ".join).reset_index()
    out = Preparation()
    out.public.table("train.csv", table[~is_test])
    out.public.table("sample_submission.csv", pd.DataFrame({"image_id": test, "PredictionString": "14 1 0 0 1 1"}))
    out.private.table("answers.csv", answers)
    out.private.table("gold_submission.csv", gold)
    for part, images in (("train", train), ("test", test)):
        out.public.copies(raw.each("train/{}.dicom", images, to=part + "/{}.dicom"))
    return out
