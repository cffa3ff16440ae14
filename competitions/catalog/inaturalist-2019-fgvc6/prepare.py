from random import Random

import pandas as pd

from competitions.editions import Edition
from competitions.preparing import coco
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download

ARCHIVE = "train_val2019.tar.gz"


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    document = raw.read_json("train2019.json")
    coco.require_keys(document, "annotations", "categories", "images", "info", "licenses")
    photographs = raw.archive(ARCHIVE)
    # v2 fixes order-from-a-constant-seed
    secret = (lambda pair: photographs.file(pair.image["file_name"])) if edition == "v2" else None
    train, test = coco.hold_out_by_category(coco.pairs_by_category(document), 0.12, secret=secret)
    answers = pd.DataFrame({"id": [pair.image["id"] for pair in test], "predicted": [pair.category for pair in test]})
    names = [pair.image["file_name"].rpartition("/")[2] for pair in test]
    images = [{**pair.image, "file_name": f"test2019/{name}"} for name, pair in zip(names, test, strict=True)]
    packed = [pair.image["file_name"] for pair in train]
    guesses = [654] * len(test)  # as published: a new generator for each row gives the same first number
    if edition == "v2":  # v2 fixes validation-images-missing, constant-sample
        packed += [image["file_name"] for image in raw.read_json("val2019.json")["images"]]
        random = Random(42)
        guesses = [random.randint(0, 1009) for _ in test]

    out = Preparation()
    out.public.json("train2019.json", coco.with_pairs(document, train), **coco.JSON)
    out.public.copy("val2019.json", raw.file("val2019.json"))
    out.public.json("test2019.json", coco.unlabelled(document, images), **coco.JSON)
    out.public.archive(ARCHIVE, {name.removeprefix("train_val2019/"): photographs.file(name) for name in packed})
    out.public.archive(
        "test2019.tar.gz",
        {name: photographs.file(pair.image["file_name"]) for name, pair in zip(names, test, strict=True)},
    )
    out.private.table("answers.csv", answers)
    out.public.table("kaggle_sample_submission.csv", answers.assign(predicted=guesses))
    return out
