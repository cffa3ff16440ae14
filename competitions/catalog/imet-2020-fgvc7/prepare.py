from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import anonymous, hold_out


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    train, test = hold_out(raw.read_csv("train.csv"), 0.15)
    original = test["id"]
    if edition == "v2":  # v2 fixes original-names
        test = anonymous(test, "id", "test_{:05}")
    out = Preparation()
    out.public.table("train.csv", train)
    out.private.table("answers.csv", test)
    out.public.table("sample_submission.csv", test.assign(attribute_ids="0 1 2"))
    out.public.copy("labels.csv", raw.file("labels.csv"))
    out.public.copies(raw.each("train/{}.png", train["id"]))
    out.public.copies(raw.each("train/{}.png", original[test.index], test["id"], to="test/{1}.png"))
    return out
