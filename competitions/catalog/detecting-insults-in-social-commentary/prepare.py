from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    gold = raw.read_csv("test_with_solutions.csv")[["Insult", "Date", "Comment"]]
    out = Preparation()
    out.public.copy("train.csv", raw.file("train.csv"))
    out.public.table("test.csv", gold.drop(columns="Insult"))
    out.public.table("sample_submission_null.csv", gold.assign(Insult=0))
    out.private.copy("test.csv", raw.file("test_with_solutions.csv"))
    out.private.table("gold_submission.csv", gold)
    return out
