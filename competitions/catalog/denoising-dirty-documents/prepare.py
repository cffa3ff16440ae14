import hashlib
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import anonymous, hold_out, hold_out_by
from competitions.preparing.images import PARAMETER, encode_anew, encoded


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    dirty, clean = raw.archive("train.zip"), raw.archive("train_cleaned.zip")
    names = [path.removeprefix("train/") for path in dirty.glob("train/*.png")]
    train, test = hold_out(names, 0.2) if edition == "v1" else by_clean_page(clean, names)  # v2 fixes texts-shared
    originals = {name: name for name in sorted(test)}
    if edition == "v2":  # v2 fixes original-names
        sizes = [dirty.file(f"train/{name}").size for name in test]
        renamed = anonymous(pd.DataFrame({"new": test, "old": test}), "new", "{}.png", sizes)
        originals = dict(zip(renamed["new"], renamed["old"], strict=True))
    out = Preparation()
    out.public.copies((f"train/{name}", dirty.file(f"train/{name}")) for name in train)
    out.public.copies((f"train_cleaned/{name}", clean.file(f"train_cleaned/{name}")) for name in train)
    out.public.copies((f"test/{new}", dirty.file(f"train/{old}")) for new, old in originals.items())
    out.private.table("answers.csv", pixels(clean, originals))
    out.public.table("sampleSubmission.csv", (frame.assign(value=1) for frame in pixels(clean, originals)))
    if edition == "v2":  # if the operator asks for it
        encode_anew(out.public, "test/", encoded, raw, params[PARAMETER])
    return out


def by_clean_page(clean: Download, names: list[str]) -> tuple[list[str], list[str]]:
    """Training and test pages, such that pages that are the same once they are clean stay together."""
    pages = pd.DataFrame({"name": names, "page": [fingerprint(read_page(clean, name)) for name in names]})
    train, test = hold_out_by(pages, "page", 0.2)
    return train["name"].tolist(), test["name"].tolist()


def fingerprint(values: NDArray[np.uint8]) -> str:
    return hashlib.blake2b(f"{values.shape}".encode() + values.tobytes()).hexdigest()


def read_page(clean: Download, name: str) -> NDArray[np.uint8]:
    with clean.open_file(f"train_cleaned/{name}") as file:
        return np.asarray(Image.open(file).convert("L"))


def pixels(clean: Download, originals: dict[str, str]) -> Iterator[pd.DataFrame]:
    """One row per pixel, one frame per image: id `<image>_<row>_<column>`, counted from 1, and value from 0 to 1."""
    for name, original in originals.items():
        values = read_page(clean, original) / 255.0
        height, width = values.shape
        rows = np.array([f"{name.removesuffix('.png')}_{row}_" for row in range(1, height + 1)], dtype=object)
        columns = np.array([f"{column}" for column in range(1, width + 1)], dtype=object)
        yield pd.DataFrame({"id": np.add.outer(rows, columns).ravel(), "value": values.ravel()})
