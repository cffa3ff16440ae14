from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out, hold_out_by


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    table = raw.read_csv("train.csv")
    if edition == "v1":  # v2 fixes groups-on-both-sides
        train, test = hold_out(table, 0.1)
    else:  # a passenger is named by the travel group and a number
        groups = table.assign(group=table["PassengerId"].str.partition("_")[0])
        train, test = (part.drop(columns="group") for part in hold_out_by(groups, "group", 0.1))
    sample = test[["PassengerId"]].assign(Transported=False)
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", test.drop(columns="Transported"))
    # v2 fixes features-in-answers
    out.private.table("test.csv", test if edition == "v1" else test[list(sample.columns)])
    out.public.table("sample_submission.csv", sample)
    return out
