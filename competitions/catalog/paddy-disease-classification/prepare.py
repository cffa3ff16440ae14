from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import anonymous, hold_out


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    train, test = hold_out(raw.read_csv("train.csv"), train_size=0.75)
    original = test["image_id"]
    if edition == "v2":  # v2 fixes order-from-a-constant-seed, original-names
        test = anonymous(test, "image_id", "test_{:05}.jpg")
    blank = "" if edition == "v1" else "normal"  # v2 rejects empty labels (v2 fixes unknown-labels-accepted)
    out = Preparation()
    out.public.table("train.csv", train)
    out.private.table("test.csv", test)
    out.public.table("sample_submission.csv", test[["image_id"]].assign(label=blank))
    out.public.copies(raw.each("train_images/{}/{}", train["label"], train["image_id"]))
    out.public.copies(
        raw.each("train_images/{}/{}", test["label"], original[test.index], test["image_id"], to="test_images/{2}")
    )
    return out
