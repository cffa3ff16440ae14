"""Split the 58 GB of train.bson into a training and a test file.

The file is never decoded: one pass reads the ids, and one pass for each output copies the bytes of whole documents.
This needs memory for two integers per product (113 MB) and one block of the file.
"""

from collections.abc import Iterator
from itertools import chain, islice

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out

from . import bson


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    with raw.open_file("train.bson") as file:
        pairs = (
            (bson.integer(product, "_id"), bson.integer(product, "category_id")) for product in bson.documents(file)
        )
        values = np.fromiter(chain.from_iterable(pairs), dtype=np.int64)
    products = pd.DataFrame(values.reshape(-1, 2), columns=["_id", "category_id"])
    if not products["_id"].is_unique:
        raise DownloadError("train.bson contains a product twice; download it again")
    answers = products[drawn(len(products))].sort_values("_id")
    out = Preparation()
    out.public.derived("train.bson", train_products, len(products))
    out.public.derived("train_example.bson", train_products, len(products), 100)
    out.public.derived("test.bson", test_products, len(products))
    out.public.copy("category_names.csv", raw.file("category_names.csv"))
    out.private.table("answers.csv", answers)
    out.public.table("sample_submission.csv", answers.assign(category_id=1000010653))
    return out


def drawn(count: int) -> NDArray[np.bool_]:
    """Return a boolean for each of `count` products: whether it is in the test set."""
    _, test = hold_out(np.arange(count), 0.1)
    return np.isin(np.arange(count), test)


def train_products(raw: Download, count: int, limit: int | None = None) -> Iterator[bytes]:
    with raw.open_file("train.bson") as file:
        products = zip(bson.documents(file), drawn(count), strict=True)
        yield from islice((product for product, in_test in products if not in_test), limit)


def test_products(raw: Download, count: int) -> Iterator[bytes]:
    with raw.open_file("train.bson") as file:
        for product, in_test in zip(bson.documents(file), drawn(count), strict=True):
            if in_test:
                yield bson.without(product, "category_id")
