from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    train, test = hold_out(raw.read_csv("train.csv"), 0.19)
    out = Preparation()
    out.public.table("train.csv", train)
    out.private.table("test.csv", test)
    out.public.table("sample_submission.csv", test.assign(has_cactus=0.5))
    images = raw.archive("train.zip")
    for name, rows in (("train.zip", train), ("test.zip", test)):
        # Kaggle's archives contain a folder train/ or test/, those of the benchmark do not.
        out.public.archive(name, images.each("train/{}", rows["id"], to="{}"))
    return out
