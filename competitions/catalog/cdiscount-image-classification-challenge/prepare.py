"""Split the 58 GB of train.bson into a training and a test file.

The file is never decoded: one pass reads the ids, and one for all outputs copies the bytes of whole documents, while a
thread reads and divides what follows. This needs memory for two integers per product (113 MB) and a few groups of
documents, of some 4 MB each.
"""

from collections.abc import Iterator
from functools import partial
from itertools import chain, islice
from typing import IO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from common.concurrency import prefetch
from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Pass, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out

from . import bson

EXAMPLES = 100
TOGETHER = 500  # products; some 4 MB


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    with raw.open_file("train.bson") as file:
        pairs = (
            (bson.integer(product, "_id"), bson.integer(product, "category_id"))
            for product in chain.from_iterable(prefetch(groups(file)))
        )
        values = np.fromiter(chain.from_iterable(pairs), dtype=np.int64)
    products = pd.DataFrame(values.reshape(-1, 2), columns=["_id", "category_id"])
    if not products["_id"].is_unique:
        raise DownloadError("train.bson contains a product twice; download it again")
    in_test = drawn(len(products))
    answers = products[in_test].sort_values("_id")
    train, examples, test = Pass(partial(divided, raw, in_test)).contents(3)
    out = Preparation()
    out.public.content("train.bson", train)
    out.public.content("train_example.bson", examples)
    out.public.content("test.bson", test)
    out.public.copy("category_names.csv", raw.file("category_names.csv"))
    out.private.table("answers.csv", answers)
    out.public.table("sample_submission.csv", answers.assign(category_id=1000010653))
    return out


def drawn(count: int) -> NDArray[np.bool_]:
    """Return a boolean for each of `count` products: whether it is in the test set."""
    _, test = hold_out(np.arange(count), 0.1)
    return np.isin(np.arange(count), test)


def groups(file: IO[bytes]) -> Iterator[list[bytes]]:
    """Yield the documents, some at a time."""
    documents = bson.documents(file)
    while group := list(islice(documents, TOGETHER)):
        yield group


def divided(raw: Download, in_test: NDArray[np.bool_]) -> Iterator[tuple[int, bytes]]:
    """Yield the next documents for the training set (0), its first ones alone (1), and the test set (2)."""
    start = example_count = 0
    with raw.open_file("train.bson") as file:
        for products in prefetch(groups(file)):
            is_held_out = in_test[start : start + len(products)].tolist()
            start += len(products)
            train = [product for product, is_test in zip(products, is_held_out, strict=True) if not is_test]
            test = [product for product, is_test in zip(products, is_held_out, strict=True) if is_test]
            examples = train[: EXAMPLES - example_count]
            example_count += len(examples)
            yield 0, b"".join(train)
            yield 1, b"".join(examples)
            yield 2, b"".join(bson.without(product, "category_id") for product in test)
