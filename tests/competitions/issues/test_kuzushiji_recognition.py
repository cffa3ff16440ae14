"""Probes of Kuzushiji Recognition."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from tests.competitions.issues._probe import World, cell, remade, table_bytes


def test_points_not_limited(v1: World, v2: World) -> None:
    """A page may be covered with points, where Kaggle read 1,200 of them."""
    carpet = " ".join(f"U+306B {x} {y}" for x in range(0, 1_500, 50) for y in range(0, 2_050, 50))
    assert v1.accepts(cell(v1.sample, "labels", carpet))
    assert "1200" in v2.refusal(cell(v2.sample, "labels", carpet))


def test_books_on_both_sides(v1: World, v2: World) -> None:
    """The hand of a book is known from its other pages."""
    table = v1.kaggle.read_csv("train.csv")
    table["image_id"] = [f"book{number % 8}_{number:05}_1" for number in range(len(table))]
    pages = io.BytesIO()
    with zipfile.ZipFile(pages, "w") as archive:
        for page in table["image_id"]:
            archive.writestr(f"{page}.jpg", page)
    worlds = remade(v1, {"train.csv": table_bytes(table), "train_images.zip": pages.getvalue()})

    def known(world: World) -> float:
        train, test = (books(world.public / name) for name in ("train_images.zip", "test_images.zip"))
        return sum(book in train for book in test) / len(test)

    def books(pages: Path) -> list[str]:
        """What each page shows here: its book."""
        with zipfile.ZipFile(pages) as archive:
            return [archive.read(name).decode().partition("_")[0] for name in archive.namelist()]

    assert known(worlds["v1"]) == 1
    assert known(worlds["v2"]) == 0


def test_original_names(v1: World, v2: World) -> None:
    """Kaggle's train.csv has the characters of v1's test pages by their ids, and none of v2's."""
    labels = v1.kaggle.read_csv("train.csv")["image_id"]

    def looked_up(world: World) -> float:
        return float(world.sample["image_id"].isin(labels).mean())

    assert looked_up(v1) == 1.0
    assert looked_up(v2) == 0
