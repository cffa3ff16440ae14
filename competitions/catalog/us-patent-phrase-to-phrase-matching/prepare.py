from competitions.preparing.declaration import Preparation
from competitions.preparing.download import Download
from competitions.preparing.splits import split


def prepare(raw: Download, edition: str, params: dict) -> Preparation:
    train, test = split(raw.read_csv("train.csv"), 0.1)
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", test.drop(columns="score"))
    out.private.table("test.csv", test)
    out.public.table("sample_submission.csv", test[["id"]].assign(score=0))
    return out
