import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out

APPEARANCES = np.array(["negative", "typical", "indeterminate", "atypical"])


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    train, test = (part.sort_values("id") for part in hold_out(raw.read_csv("train_study_level.csv"), 0.1))
    images = raw.read_csv("train_image_level.csv").sort_values("id")
    study = images["StudyInstanceUID"] + "_study"
    if not study.isin([*train["id"], *test["id"]]).all():
        raise DownloadError("train_image_level.csv has images of studies that are not in train_study_level.csv")
    test_images = images[study.isin(test["id"])]
    appearance = APPEARANCES[test.iloc[:, 1:5].to_numpy().argmax(axis=1)]
    ids = [*test["id"], *test_images["id"]]
    strings = [*(f"{name} 1 0 0 1 1" for name in appearance), *test_images["label"]]
    blank = ["negative 1 0 0 1 1"] * len(test) + ["none 1 0 0 1 1"] * len(test_images)
    out = Preparation()
    out.public.table("train_study_level.csv", train)
    out.public.table("train_image_level.csv", images[study.isin(train["id"])])
    out.private.table("test.csv", pd.DataFrame({"id": ids, "PredictionString": strings}))
    out.public.table("sample_submission.csv", pd.DataFrame({"id": ids, "PredictionString": blank}))
    for part, rows in (("train", train), ("test", test)):
        for folder in rows["id"].str.removesuffix("_study"):
            out.public.copy_tree(f"{part}/{folder}", raw, f"train/{folder}")
    return out
