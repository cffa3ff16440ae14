from random import Random
from typing import Any

import numpy as np
import pandas as pd

from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out
from competitions.scoring.metrics.rle_masks import encode_rle

from .encoding import EMPTY

BANDS = [f"band_{band:02d}.npy" for band in range(8, 17)]
MASKS = ["human_individual_masks.npy", "human_pixel_masks.npy"]


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    validation = raw.read_json("validation_metadata.json")
    train, test = hold_out(raw.read_json("train_metadata.json"), len(validation))
    answers = pd.DataFrame([answer(raw, record["record_id"]) for record in test])
    random = Random(0)
    guesses = [random.choice(["1 3 10 5", EMPTY]) for _ in test]
    out = Preparation()
    for folder, records, files in (("train", train, BANDS + MASKS), ("test", test, BANDS)):
        paths = (f"{record['record_id']}/{file}" for record in records for file in files)
        out.public.copies((f"{folder}/{path}", raw.file(f"train/{path}")) for path in paths)
    out.public.copy_tree("validation", raw, "validation")
    out.public.copy("validation_metadata.json", raw.file("validation_metadata.json"))
    out.public.json("train_metadata.json", train)
    out.private.table("answers.csv", answers)
    out.public.table("sample_submission.csv", answers.assign(encoded_pixels=guesses))
    return out


def answer(raw: Download, record_id: str) -> dict[str, Any]:
    with raw.open_file(f"train/{record_id}/human_pixel_masks.npy") as file:
        mask = np.lib.format.read_array(file) == 1
    # Only the header of this file of 2 MB is read.
    with raw.open_file(f"train/{record_id}/{BANDS[0]}") as file:
        np.lib.format.read_magic(file)
        (height, width, _), _, _ = np.lib.format.read_array_header_1_0(file)
    encoded = encode_rle(mask.ravel(order="F")) or EMPTY
    return {"record_id": record_id, "encoded_pixels": encoded, "height": height, "width": width}
