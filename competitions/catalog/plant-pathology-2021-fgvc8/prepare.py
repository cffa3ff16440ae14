from competitions.preparing.declaration import Preparation
from competitions.preparing.download import Download
from competitions.preparing.splits import split


def prepare(raw: Download, edition: str, params: dict) -> Preparation:
    train, test = split(raw.read_csv("train.csv"), 0.2)
    out = Preparation()
    out.public.table("train.csv", train)
    out.private.table("answers.csv", test)
    out.public.table("sample_submission.csv", test.assign(labels="healthy"))
    out.public.copies(raw.each("train_images/{}", train["image"]))
    out.public.copies(raw.each("train_images/{}", test["image"], to="test_images/{}"))
    return out
