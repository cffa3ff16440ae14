from itertools import groupby

import pandas as pd

from competitions.editions import Edition
from competitions.preparing import coco
from competitions.preparing.coco import Pair
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.images import PARAMETER, encode_anew, encoded


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    document = raw.read_json("train_metadata.json")
    pairs = coco.pairs_by_category(document, "image_id")
    # v2 fixes order-from-a-constant-seed
    secret = (lambda pair: raw.file(f"train_images/{pair.image['file_name']}")) if edition == "v2" else None
    old_train, old_test = coco.hold_out_by_category(pairs, 0.2, few=0, secret=secret)
    train = [
        renamed(pair, f"{category:05d}__{number:03d}", f"{category // 100:03d}/{category % 100:02d}/")
        for category, pairs in groupby(old_train, key=lambda pair: pair.category)
        for number, pair in enumerate(pairs, start=1)
    ]
    test = [renamed(pair, str(k), f"{k // 1000:03d}/", f"test-{k:06d}") for k, pair in enumerate(old_test)]
    answers = pd.DataFrame({"Id": range(len(test)), "Predicted": [pair.category for pair in test]})
    out = Preparation()
    out.public.json("train_metadata.json", coco.with_pairs(document, train), **coco.JSON)
    out.public.json("test_metadata.json", [pair.image for pair in test], **coco.JSON)
    for folder, old, new in (("train_images", old_train, train), ("test_images", old_test, test)):
        out.public.copies(
            (f"{folder}/{after.image['file_name']}", raw.file(f"train_images/{before.image['file_name']}"))
            for before, after in zip(old, new, strict=True)
        )
    out.private.table("answers.csv", answers)
    out.public.table("sample_submission.csv", answers.assign(Predicted=42))
    if edition == "v2":  # if the operator asks for it
        encode_anew(out.public, "test_images/", encoded, raw, params[PARAMETER])
    return out


def renamed(pair: Pair, image_id: str, folder: str, stem: str | None = None) -> Pair:
    image = {**pair.image, "image_id": image_id, "file_name": f"{folder}{stem or image_id}.jpg"}
    return Pair({**pair.annotation, "image_id": image_id}, image)
