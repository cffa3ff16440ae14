from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out_by

SHOWN = ["site_id", "patient_id", "image_id", "laterality", "view", "age", "implant", "machine_id", "prediction_id"]


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    train, test = hold_out_by(raw.read_csv("train.csv"), "patient_id", 0.1, seed=42)
    test = test.assign(prediction_id=test["patient_id"].astype(str) + "_" + test["laterality"])
    answers = test.groupby("prediction_id", as_index=False)["cancer"].first()
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", test[SHOWN])
    out.private.table("answers.csv", answers)
    out.public.table("sample_submission.csv", answers.assign(cancer=train["cancer"].mean()))
    for part, rows in (("train_images", train), ("test_images", test)):
        images = rows["patient_id"], rows["image_id"]
        out.public.copies(raw.each("train_images/{}/{}.dcm", *images, to=part + "/{}/{}.dcm"))
    return out
