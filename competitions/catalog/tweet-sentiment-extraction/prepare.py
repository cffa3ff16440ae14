from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    # v2 fixes missing-value-texts
    train, test = hold_out(raw.read_csv("train.csv", keep_default_na=edition == "v1", texts="arrow"), 0.1)
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", test.drop(columns="selected_text"))
    out.public.table("sample_submission.csv", test[["textID"]].assign(selected_text=""))
    out.private.table("test.csv", test)
    return out
