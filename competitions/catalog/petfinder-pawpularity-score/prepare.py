import numpy as np

from competitions.editions import Edition
from competitions.preparing.copies import without_copies
from competitions.preparing.declaration import LeftOut, Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import anonymous, hold_out

from .scale import HIGHEST, LOWEST


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    out = Preparation()
    train, test = hold_out(raw.read_csv("train.csv"), 0.1)
    original = test["Id"]
    if edition == "v2":  # v2 fixes original-names, duplicate-photographs
        before, train = len(train), without_copies(train, test, raw, "train/{}.jpg")
        out.left_out.append(LeftOut("duplicate-photographs", "images", before - len(train), before))
        test = anonymous(test, "Id", "test_{:04}")
    guesses = np.random.default_rng(0).uniform(LOWEST, HIGHEST, len(test)).round(2)
    out.public.table("train.csv", train)
    out.public.table("test.csv", test.drop(columns="Pawpularity"))
    out.private.table("test.csv", test)
    out.public.table("sample_submission.csv", test[["Id"]].assign(Pawpularity=guesses))
    out.public.copies(raw.each("train/{}.jpg", train["Id"]))
    out.public.copies(raw.each("train/{}.jpg", original[test.index], test["Id"], to="test/{1}.jpg"))
    return out
