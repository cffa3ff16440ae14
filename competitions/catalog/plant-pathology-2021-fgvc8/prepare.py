from competitions.editions import Edition
from competitions.preparing.copies import without_copies
from competitions.preparing.declaration import LeftOut, Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import anonymous, hold_out


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    out = Preparation()
    train, test = hold_out(raw.read_csv("train.csv"), 0.2)
    original = test["image"]
    if edition == "v2":  # v2 fixes original-names, duplicate-images
        before, train = len(train), without_copies(train, test, raw, "train_images/{}")
        out.left_out.append(LeftOut("duplicate-images", "images", before - len(train), before))
        test = anonymous(test, "image", "test_{:05}.jpg")
    out.public.table("train.csv", train)
    out.private.table("answers.csv", test)
    out.public.table("sample_submission.csv", test.assign(labels="healthy"))
    out.public.copies(raw.each("train_images/{}", train["image"]))
    out.public.copies(raw.each("train_images/{}", original[test.index], test["image"], to="test_images/{1}"))
    return out
