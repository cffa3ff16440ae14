from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out, hold_out_by


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    table = raw.read_csv("train.csv", texts="arrow")
    # v2 fixes anchors-on-both-sides
    train, test = hold_out_by(table, "anchor", 0.1) if edition == "v2" else hold_out(table, 0.1)
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", test.drop(columns="score"))
    out.private.table("test.csv", test)
    out.public.table("sample_submission.csv", test[["id"]].assign(score=0))
    return out
