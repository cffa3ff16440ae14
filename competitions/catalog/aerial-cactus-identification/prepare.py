from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import anonymous, hold_out


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    train, test = hold_out(raw.read_csv("train.csv"), 0.19)
    original = test["id"]
    if edition == "v2":  # v2 fixes original-names
        test = anonymous(test, "id", "test_{:05}.jpg")
    out = Preparation()
    out.public.table("train.csv", train)
    out.private.table("test.csv", test)
    out.public.table("sample_submission.csv", test.assign(has_cactus=0.5))
    images = raw.archive("train.zip")
    # Kaggle's archives contain a folder train/ or test/, those of the benchmark do not.
    out.public.archive("train.zip", images.each("train/{}", train["id"], to="{}"))
    out.public.archive("test.zip", images.each("train/{}", original[test.index], test["id"], to="{1}"))
    return out
