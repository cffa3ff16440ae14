"""COCO-style metadata, of which a test set is drawn category by category, for Herbarium and iNaturalist.

A document holds, beside categories and licences, the parallel lists `annotations` and `images`: the k-th annotation is
about the k-th image. A pair is one of each. The largest document (Herbarium 2021: 2.3 million pairs) takes about 2 GB;
the documents made from it share its records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from random import Random
from typing import Any, NamedTuple

from competitions.errors import DownloadError
from competitions.preparing.declaration import Preparation
from competitions.preparing.download import Download, Member
from competitions.preparing.holdout import hold_out

JSON: dict[str, Any] = {"indent": 4, "sort_keys": True}
"""How these competitions write their documents: options of ``json.dumps``."""


class Pair(NamedTuple):
    """An annotation and the image that it is about."""

    annotation: dict[str, Any]
    image: dict[str, Any]

    @property
    def category(self) -> int:
        """The label."""
        category: int = self.annotation["category_id"]
        return category


def require_keys(document: Mapping[str, Any], *keys: str) -> None:
    """Raise `DownloadError` unless the top level of `document` has these keys and no others."""
    if set(document) != set(keys):
        raise DownloadError(f"the metadata must hold {', '.join(sorted(keys))}, not {', '.join(sorted(document))}")


def pairs_by_category(document: Mapping[str, Any], image_id: str = "id") -> list[list[Pair]]:
    """The pairs of each category: categories in order of first appearance, pairs in the order of the document.

    `image_id` is the key that holds the id of an image. Raises `DownloadError` where the lists are not parallel.
    """
    categories: dict[int, list[Pair]] = defaultdict(list)
    annotations, images = document["annotations"], document["images"]
    if len(annotations) != len(images):
        raise DownloadError(f"the metadata has {len(annotations)} annotations and {len(images)} images")
    for pair in map(Pair, annotations, images):
        if pair.annotation["image_id"] != pair.image[image_id]:
            raise DownloadError(
                f"annotation {pair.annotation['image_id']} and image {pair.image[image_id]} do not match"
            )
        categories[pair.category].append(pair)
    return list(categories.values())


def hold_out_by_category(
    categories: Iterable[Sequence[Pair]], test_size: float, *, few: int = 5
) -> tuple[list[Pair], list[Pair]]:
    """(train, test) pairs: train category by category, test shuffled.

    `holdout.hold_out` draws the share `test_size` of each category. A category with fewer than `few` pairs gives its
    last pair to the test part, or none if it has only one.
    """
    train: list[Pair] = []
    test: list[Pair] = []
    for pairs in categories:
        for part, positions in zip((train, test), _positions(len(pairs), test_size, few), strict=True):
            part.extend(pairs[position] for position in positions)
    Random(0).shuffle(test)
    return train, test


@cache  # a draw depends on the number of pairs only
def _positions(count: int, test_size: float, few: int) -> tuple[list[int], list[int]]:
    positions = list(range(count))
    if count >= few:
        return hold_out(positions, test_size)
    return (positions[:-1], positions[-1:]) if count > 1 else (positions, [])


def with_pairs(document: Mapping[str, Any], pairs: Sequence[Pair]) -> dict[str, Any]:
    """The document with these pairs instead of its own."""
    return {
        **document,
        "annotations": [pair.annotation for pair in pairs],
        "images": [pair.image for pair in pairs],
    }


def unlabelled(document: Mapping[str, Any], images: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What a test document shows: `images`, licences and info."""
    return {"images": images, "licenses": document["licenses"], "info": document["info"]}


def herbarium(raw: Download, folder: str, document: Mapping[str, Any]) -> Preparation:
    """Herbarium 2020 and 2021: a fifth of each category becomes the test set and is renumbered.

    `document` is the metadata of `folder`/train ("" for the top), whose images lie beside it.
    """
    import pandas as pd

    train, test = hold_out_by_category(pairs_by_category(document), 0.2)
    images = [
        {**pair.image, "id": str(k), "file_name": f"images/{k // 1000:03d}/{k}.jpg"} for k, pair in enumerate(test)
    ]
    answers = pd.DataFrame({"Id": range(len(test)), "Predicted": [pair.category for pair in test]})
    prefix = f"{folder}/" if folder else ""

    def photograph(pair: Pair) -> Member:
        return raw.file(f"{prefix}train/{pair.image['file_name']}")

    out = Preparation()
    out.public.json(f"{prefix}train/metadata.json", with_pairs(document, train), **JSON)
    out.public.json(f"{prefix}test/metadata.json", unlabelled(document, images), **JSON)
    out.public.copies((f"{prefix}train/{pair.image['file_name']}", photograph(pair)) for pair in train)
    out.public.copies(
        (f"{prefix}test/{image['file_name']}", photograph(pair)) for image, pair in zip(images, test, strict=True)
    )
    out.private.table("answers.csv", answers)
    out.public.table("sample_submission.csv", answers.assign(Predicted=0))
    return out
