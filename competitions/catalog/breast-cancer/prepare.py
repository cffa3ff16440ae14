from competitions.preparing.declaration import Preparation
from competitions.preparing.download import Download
from competitions.preparing.splits import split


def prepare(raw: Download, edition: str, params: dict) -> Preparation:
    train, test = split(raw.read_csv("train.csv"), 0.3)
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", test.drop(columns="malignant"))
    out.private.table("test.csv", test[["id", "malignant"]])
    out.public.table("sample_submission.csv", test[["id"]].assign(malignant=0.5))
    return out
