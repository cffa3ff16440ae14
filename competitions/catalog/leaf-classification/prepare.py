import json
from pathlib import Path

from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out, one_hot

CLASSES = json.loads((Path(__file__).parent / "classes.json").read_text())["classes"]


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    table = raw.archive("train.csv.zip").read_csv("train.csv")
    train, test = hold_out(table, 0.1)
    answers = test[["id"]].join(one_hot(test["species"], CLASSES))
    out = Preparation()
    out.public.table("train.csv", train)
    out.public.table("test.csv", test.drop(columns="species"))
    out.private.table("test.csv", answers)
    out.public.table("sample_submission.csv", answers.assign(**dict.fromkeys(CLASSES, 1 / 99)))
    out.public.copies(raw.archive("images.zip").each("images/{}.jpg", table["id"]))
    return out
