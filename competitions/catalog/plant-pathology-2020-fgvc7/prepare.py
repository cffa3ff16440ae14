from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out

from .columns import CLASSES


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    old_train, old_test = hold_out(raw.read_csv("train.csv"), 0.1)
    train = old_train.assign(image_id=[f"Train_{i}" for i in range(len(old_train))])
    test = old_test.assign(image_id=[f"Test_{i}" for i in range(len(old_test))])
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", test[["image_id"]])
    out.private.table("test.csv", test)
    out.public.table("sample_submission.csv", test[["image_id"]].assign(**dict.fromkeys(CLASSES, 0.25)))
    for old, new in ((old_train, train), (old_test, test)):
        out.public.copies(raw.each("images/{}.jpg", old["image_id"], new["image_id"], to="images/{1}.jpg"))
    return out
