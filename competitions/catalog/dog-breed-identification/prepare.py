import json
from pathlib import Path

from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import anonymous, hold_out, one_hot

CLASSES = json.loads((Path(__file__).parent / "classes.json").read_text())


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    train, test = hold_out(raw.read_csv("labels.csv"), 0.1)
    original = test["id"]
    if edition == "v2":  # v2 fixes original-names
        test = anonymous(test, "id", "test_{:04}")
    answers = test[["id"]].join(one_hot(test["breed"], CLASSES))
    out = Preparation()
    out.public.table("labels.csv", train)
    out.private.table("test.csv", answers)
    out.public.table("sample_submission.csv", answers.assign(**dict.fromkeys(CLASSES, 1 / 120)))
    out.public.copies(raw.each("train/{}.jpg", train["id"]))
    out.public.copies(raw.each("train/{}.jpg", original[test.index], test["id"], to="test/{1}.jpg"))
    return out
