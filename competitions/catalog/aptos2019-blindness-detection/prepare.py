from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import anonymous, hold_out


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    train, test = hold_out(raw.read_csv("train.csv"), 0.1)
    original = test["id_code"]
    if edition == "v2":  # v2 fixes original-names
        test = anonymous(test, "id_code", "test_{:04}")
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", test.drop(columns="diagnosis"))
    out.private.table("test.csv", test)
    out.public.table("sample_submission.csv", test.assign(diagnosis=0))
    out.public.copies(raw.each("train_images/{}.png", train["id_code"]))
    out.public.copies(raw.each("train_images/{}.png", original[test.index], test["id_code"], to="test_images/{1}.png"))
    return out
