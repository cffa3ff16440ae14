"""The 58 GB of cdiscount are inflated twice: for the ids, which decide the split, and for all files together."""

import zipfile
from pathlib import Path
from typing import IO

import bson as reference  # of pymongo
import pandas as pd
import pytest

from competitions import registry
from competitions.preparing.archives.zips import ZipContainer
from storage.datasets import prepare

NAME = "cdiscount-image-classification-challenge"
PRODUCTS = [{"_id": number * 7 % 1009, "category_id": number % 5, "imgs": [b"\xff" * number]} for number in range(230)]


def test_all_files_come_from_one_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.get(NAME).module("prepare"), "TOGETHER", 16)
    monkeypatch.setattr(registry.get(NAME).module("prepare"), "EXAMPLES", 40)
    with zipfile.ZipFile(tmp_path / "raw.zip", "w", zipfile.ZIP_DEFLATED) as raw:
        raw.writestr("train.bson", b"".join(map(reference.encode, PRODUCTS)))
        raw.writestr("category_names.csv", "category_id\n")
    opened: list[str] = []
    original = ZipContainer.open

    def counted(self: ZipContainer, name: str) -> IO[bytes]:
        opened.append(name)
        return original(self, name)

    monkeypatch.setattr(ZipContainer, "open", counted)
    prepare(NAME, tmp_path / "raw.zip", tmp_path / "out")
    assert opened.count("train.bson") == 2
    public = tmp_path / "out/public"
    found = {path.name: reference.decode_all(path.read_bytes()) for path in public.glob("*.bson")}
    held = {product["_id"] for product in found["test.bson"]}
    train = [product for product in PRODUCTS if product["_id"] not in held]
    assert found == {
        "train.bson": train,
        "train_example.bson": train[:40],
        "test.bson": [
            {"_id": product["_id"], "imgs": product["imgs"]} for product in PRODUCTS if product["_id"] in held
        ],
    }
    answers = pd.read_csv(tmp_path / "out/private/answers.csv")
    of_id = {product["_id"]: product["category_id"] for product in PRODUCTS}
    assert dict(zip(answers["_id"], answers["category_id"], strict=True)) == {
        each: of_id[each] for each in sorted(held)
    }
