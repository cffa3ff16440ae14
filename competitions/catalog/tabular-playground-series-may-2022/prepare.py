from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    train, test = hold_out(raw.read_csv("train.csv"), params["test_size"])
    train, test = train.assign(id=range(len(train))), test.assign(id=range(len(train), len(train) + len(test)))
    targets = test[["id", "target"]]
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", test.drop(columns="target"))
    out.private.table("test.csv", test)
    out.private.table("gold_submission.csv", targets)
    out.public.table("sample_submission.csv", targets.assign(target=0.5))
    return out
