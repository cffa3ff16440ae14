from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import anonymous, hold_out


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    table = raw.read_csv("train.csv")
    train, test = hold_out(table[table["image"] != "ce27d36c9147cc19.jpg"], 0.1)  # listed twice
    original = test["image"]
    if edition == "v2":  # v2 fixes original-names
        test = anonymous(test, "image", "test_{:05}.jpg")
    out = Preparation()
    out.public.table("train.csv", train)
    out.private.table("test.csv", test)
    out.public.table("sample_submission.csv", test[["image"]].assign(hotel_id="36363 53586 18807 64314 60181"))
    out.public.copies(raw.each("train_images/{}/{}", train["chain"], train["image"]))
    out.public.copies(
        raw.each("train_images/{}/{}", test["chain"], original[test.index], test["image"], to="test_images/{2}")
    )
    return out
