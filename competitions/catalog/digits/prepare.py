from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    train, test = hold_out(raw.read_csv("train.csv"), 0.2)
    out = Preparation()
    out.public.table("train.csv", train)
    out.private.table("test.csv", test)
    out.public.table("sample_submission.csv", test.assign(label=0))
    images = raw.archive("images.zip")
    for name, rows in (("train.zip", train), ("test.zip", test)):
        out.public.archive(name, {f"{digit}.png": images.file(f"images/{digit}.png") for digit in rows["id"]})
    return out
