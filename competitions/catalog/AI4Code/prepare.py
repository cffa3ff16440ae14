from collections.abc import Hashable, Iterator

import pandas as pd

from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    ancestors = raw.read_csv("train_ancestors.csv").sample(frac=1, random_state=0)
    is_test = ancestors["ancestor_id"].isin(test_families(ancestors, params["test_size"]))
    test_ids = ancestors.loc[is_test, "id"]
    orders = raw.read_csv("train_orders.csv")
    answers = orders[orders["id"].isin(test_ids)]
    out = Preparation()
    for part, ids in (("train", ancestors.loc[~is_test, "id"]), ("test", test_ids)):
        out.public.copies((f"{part}/{name}.json", raw.file(f"train/{name}.json")) for name in ids)
    out.public.table("train_ancestors.csv", ancestors[~is_test])
    out.public.table("train_orders.csv", orders[~orders["id"].isin(test_ids)])
    out.public.derived("sample_submission.csv", given_orders, answers["id"].tolist())
    out.private.table("test_orders.csv", answers)
    return out


def test_families(ancestors: pd.DataFrame, test_size: int) -> list[Hashable]:
    """Take whole families in order of appearance, skipping those that would exceed `test_size` notebooks."""
    families: list[Hashable] = []
    drawn = 0
    for family, size in ancestors.groupby("ancestor_id", sort=False).size().items():
        if drawn + size <= test_size:
            families.append(family)
            drawn += size
    if drawn != test_size:
        raise DownloadError(f"the families of train_ancestors.csv give {drawn} test notebooks instead of {test_size}")
    return families


def given_orders(raw: Download, ids: list[str]) -> Iterator[bytes]:
    """The sample submission: the cells of each notebook in the order of its file."""
    orders = [" ".join(raw.read_json(f"train/{name}.json")["cell_type"]) for name in ids]
    yield pd.DataFrame({"id": ids, "cell_order": orders}).to_csv(index=False).encode()
