from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    train, test = hold_out(raw.read_csv("train.csv"), 0.3)
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", test.drop(columns="progression"))
    out.private.table("test.csv", test[["id", "progression"]])
    out.public.table("sample_submission.csv", test[["id"]].assign(progression=train["progression"].median()))
    return out
