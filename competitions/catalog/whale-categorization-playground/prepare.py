import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import anonymous, hold_out
from competitions.preparing.images import PARAMETER, encode_anew, encoded


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    table = raw.read_csv("train.csv")
    part = pd.Series(index=table.index, dtype=object)
    random = np.random.default_rng(0)
    for _, photographs in table.groupby("Id", sort=False):
        if len(photographs) > 1:
            part[photographs.sample(2, random_state=0).index] = ["train", "test"]
        else:
            part[photographs.index] = random.choice(["train", "test"], replace=False, p=[1 - 0.1, 0.1])
    rest_train, rest_test = hold_out(table[part.isna()], 0.1)
    part[rest_train.index], part[rest_test.index] = "train", "test"
    train, test = table[part == "train"], table[part == "test"]
    answers = test.assign(Id=test["Id"].where(test["Id"].isin(train["Id"]), "new_whale"))
    if edition == "v2":  # v2 fixes original-names
        answers = anonymous(answers, "Image", "test_{}.jpg")

    out = Preparation()
    out.public.table("train.csv", train)
    out.private.table("test.csv", answers)
    out.public.table("sample_submission.csv", answers.assign(Id="new_whale w_1287fbc w_98baff9 w_7554f44 w_1eafe46"))
    out.public.copies(raw.each("train/{}", train["Image"]))
    out.public.copies(raw.each("train/{}", test["Image"][answers.index], answers["Image"], to="test/{1}"))
    if edition == "v2":  # if the operator asks for it
        encode_anew(out.public, "test/", encoded, raw, params[PARAMETER])
    return out
