import pandas as pd

from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.dicom import anonymous_scan
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out_by, shuffled

SHOWN = ["site_id", "patient_id", "image_id", "laterality", "view", "age", "implant", "machine_id", "prediction_id"]
IDS = ["patient_id", "image_id"]


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    train, test = hold_out_by(raw.read_csv("train.csv"), "patient_id", 0.1, seed=42)
    original = test[IDS]
    if edition == "v2":  # v2 fixes original-ids
        test = renamed(test, train)
    test = test.assign(prediction_id=test["patient_id"].astype(str) + "_" + test["laterality"])
    answers = test.groupby("prediction_id", as_index=False)["cancer"].first()
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", test[SHOWN])
    out.private.table("answers.csv", answers)
    out.public.table("sample_submission.csv", answers.assign(cancer=train["cancer"].mean()))
    # v2 fixes original-ids
    copies = {"train_images": train} if edition == "v2" else {"train_images": train, "test_images": test}
    for part, rows in copies.items():
        images = rows["patient_id"], rows["image_id"]
        out.public.copies(raw.each("train_images/{}/{}.dcm", *images, to=part + "/{}/{}.dcm"))
    if edition == "v2":  # v2 fixes original-ids
        old = original.loc[test.index]
        for patient, image, *before in zip(test["patient_id"], test["image_id"], old[IDS[0]], old[IDS[1]], strict=True):
            file = raw.file("train_images/{}/{}.dcm".format(*before))
            names = f"{patient}", "", f"{image}", f"{image}"  # the number in the series is that of the image, too
            out.public.derived(
                f"test_images/{patient}/{image}.dcm", anonymous_scan, file.archive, file.name, *names, size=file.size
            )
    return out


def renamed(test: pd.DataFrame, train: pd.DataFrame) -> pd.DataFrame:
    """The test rows with other numbers of patients and images, those after train's, in another order."""
    patients = shuffled(test[["patient_id"]].drop_duplicates(), test["image_id"], test["cancer"])["patient_id"]
    first = train[IDS].max() + 1
    numbers = dict(zip(patients, range(first["patient_id"], first["patient_id"] + len(patients)), strict=True))
    rows = shuffled(test)
    rows = rows.assign(patient_id=rows["patient_id"].map(numbers)).sort_values("patient_id", kind="stable")
    return rows.assign(image_id=range(first["image_id"], first["image_id"] + len(test)))
