from competitions.preparing.declaration import Preparation
from competitions.preparing.download import Download
from competitions.preparing.splits import split


def prepare(raw: Download, edition: str, params: dict) -> Preparation:
    train, test = split(raw.read_csv("train.csv"), 0.2)
    out = Preparation()
    out.public.table("train.csv", train)
    out.private.table("test.csv", test)
    out.public.table("sample_submission.csv", test.assign(label=0))
    images = raw.archive("images.zip")
    for name, rows in (("train.zip", train), ("test.zip", test)):
        out.public.archive(name, {f"{digit}.png": images.file(f"images/{digit}.png") for digit in rows["id"]})
    return out
