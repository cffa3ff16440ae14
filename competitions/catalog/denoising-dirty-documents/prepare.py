from collections.abc import Iterator

import numpy as np
import pandas as pd
from PIL import Image

from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    dirty, clean = raw.archive("train.zip"), raw.archive("train_cleaned.zip")
    names = [path.removeprefix("train/") for path in dirty.glob("train/*.png")]
    train, test = hold_out(names, 0.2)
    out = Preparation()
    out.public.copies((f"train/{name}", dirty.file(f"train/{name}")) for name in train)
    out.public.copies((f"train_cleaned/{name}", clean.file(f"train_cleaned/{name}")) for name in train)
    out.public.copies((f"test/{name}", dirty.file(f"train/{name}")) for name in test)
    out.private.table("answers.csv", pixels(clean, sorted(test)))
    out.public.table("sampleSubmission.csv", (frame.assign(value=1) for frame in pixels(clean, sorted(test))))
    return out


def pixels(clean: Download, names: list[str]) -> Iterator[pd.DataFrame]:
    """One row per pixel, one frame per image: id `<image>_<row>_<column>`, counted from 1, and value from 0 to 1."""
    for name in names:
        with clean.open_file(f"train_cleaned/{name}") as file:
            values = np.asarray(Image.open(file).convert("L")) / 255.0
        height, width = values.shape
        rows = np.array([f"{name.removesuffix('.png')}_{row}_" for row in range(1, height + 1)], dtype=object)
        columns = np.array([f"{column}" for column in range(1, width + 1)], dtype=object)
        yield pd.DataFrame({"id": np.add.outer(rows, columns).ravel(), "value": values.ravel()})
