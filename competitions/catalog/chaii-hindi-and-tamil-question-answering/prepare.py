from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out, hold_out_by


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    # v2 fixes missing-value-texts
    table = raw.read_csv("train.csv", keep_default_na=edition == "v1", texts="arrow")
    # v2 fixes passages-on-both-sides
    train, test = hold_out_by(table, "context", 0.1) if edition == "v2" else hold_out(table, 0.1)
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", test.drop(columns=["answer_start", "answer_text"]))
    out.public.table("sample_submission.csv", test[["id"]].assign(PredictionString="dummy text"))
    out.private.table("test.csv", test[["id"]].assign(PredictionString=test["answer_text"]))
    return out
