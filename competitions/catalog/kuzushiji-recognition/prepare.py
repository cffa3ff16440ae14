import pandas as pd

from competitions.editions import Edition
from competitions.preparing.declaration import Params, Preparation
from competitions.preparing.download import Download
from competitions.preparing.holdout import anonymous, hold_out, hold_out_by
from competitions.preparing.images import PARAMETER, encode_anew, encoded


def prepare(raw: Download, edition: Edition, params: Params) -> Preparation:
    table = raw.read_csv("train.csv")
    train, test = hold_out_books(table) if edition == "v2" else hold_out(table, 0.1)  # v2 fixes books-on-both-sides
    original = test["image_id"]
    if edition == "v2":  # v2 fixes original-names
        test = anonymous(test, "image_id", "test_{:05}")
    out = Preparation()
    out.public.table("train.csv", train)
    out.private.table("test.csv", test)
    out.public.table("sample_submission.csv", test.assign(labels="U+003F 1 1 U+FF2F 2 2"))
    out.private.table("gold_submission.csv", test.assign(labels=test["labels"].map(corners, na_action="ignore")))
    out.public.copy("unicode_translation.csv", raw.file("unicode_translation.csv"))
    pages = raw.archive("train_images.zip")
    for name, part, old in (
        ("train_images.zip", train, train["image_id"]),
        ("test_images.zip", test, original.loc[test.index]),
    ):
        files = zip(part["image_id"], old, strict=True)
        out.public.archive(name, {f"{page}.jpg": pages.file(f"{before}.jpg") for page, before in files})
    if edition == "v2":  # if the operator asks for it
        encode_anew(out.public, "test_images.zip", encoded, raw, params[PARAMETER])
    return out


def corners(labels: str) -> str:
    """Return a point just inside the upper left corner of every box."""
    parts = labels.split()
    points = zip(parts[0::5], parts[1::5], parts[2::5], strict=True)
    return " ".join(f"{character} {int(x) + 1} {int(y) + 1}" for character, x, y in points)


def hold_out_books(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Hold out whole books. The id of a page starts with its book, up to the first `_` or `-`."""
    book = table["image_id"].str.extract(r"^([^_-]+)", expand=False)
    train, test = hold_out_by(table.assign(book=book), "book", 0.1)
    return train.drop(columns="book"), test.drop(columns="book")
