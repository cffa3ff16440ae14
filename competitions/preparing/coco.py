"""COCO-style metadata for Herbarium and iNaturalist, whose test sets are drawn category by category.

Besides categories and licences, a document has the parallel lists `annotations` and `images`: the k-th annotation
describes the k-th image. A pair is an annotation and its image. The largest document (Herbarium 2021 with 2.3 million
pairs) takes about 2 GB of memory; documents derived from it share its records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from competitions.editions import Edition
from competitions.errors import DownloadError
from competitions.preparing.declaration import Preparation
from competitions.preparing.download import Download, Member, named_tuples
from competitions.preparing.holdout import hold_out, secret_random

if TYPE_CHECKING:
    import pandas as pd

JSON: dict[str, Any] = {"indent": 4, "sort_keys": True}
"""Options of ``json.dumps`` with which these competitions write their documents."""


class Pair(NamedTuple):
    """An annotation and the image that it describes."""

    annotation: dict[str, Any]
    image: dict[str, Any]

    @property
    def category(self) -> int:
        """The label."""
        category: int = self.annotation["category_id"]
        return category


def require_keys(document: Mapping[str, Any], *keys: str) -> None:
    """Raise `DownloadError` unless the top level of `document` has exactly these keys."""
    if set(document) != set(keys):
        raise DownloadError(f"the metadata must hold {', '.join(sorted(keys))}, not {', '.join(sorted(document))}")


def pairs_by_category(document: Mapping[str, Any], image_id: str = "id") -> list[list[Pair]]:
    """The pairs of each category: categories in order of first appearance, pairs in the order of the document.

    `image_id` is the key of an image's id. Raises `DownloadError` if the lists are not parallel.
    """
    categories: dict[int, list[Pair]] = defaultdict(list)
    annotations, images = document["annotations"], document["images"]
    if len(annotations) != len(images):
        raise DownloadError(f"the metadata has {len(annotations)} annotations and {len(images)} images")
    for pair in named_tuples(Pair, annotations, images):
        annotation, image = pair
        if annotation["image_id"] != image[image_id]:
            raise DownloadError(f"annotation {annotation['image_id']} and image {image[image_id]} do not match")
        categories[pair.category].append(pair)
    return list(categories.values())


def labelled_images(document: Mapping[str, Any]) -> pd.DataFrame:
    """One row for each image: its fields, and `category_id` if the document has annotations.

    >>> labelled_images({"images": [{"id": 7}], "annotations": [{"image_id": 7, "category_id": 3}]}).values.tolist()
    [[7, 3]]
    """
    import pandas as pd

    images = pd.DataFrame(document["images"])
    if not document.get("annotations"):
        return images
    annotations = pd.DataFrame(document["annotations"])[["image_id", "category_id"]].rename(columns={"image_id": "id"})
    return images.merge(annotations.drop_duplicates("id"), on="id")


def hold_out_by_category(
    categories: Iterable[Sequence[Pair]],
    test_size: float,
    *,
    few: int = 5,
    secret: Callable[[Pair], Any] | None = None,
) -> tuple[list[Pair], list[Pair]]:
    """(train, test) pairs. The train pairs are ordered by category, the test pairs are shuffled.

    `holdout.hold_out` draws the share `test_size` of each category. Of a category with fewer than `few` pairs, only the
    last pair goes to the test part, or none if there is just one.

    The order of the test pairs depends on the `secret` of each pair, see `secret_random`. Without secrets, the order is
    always the same for the same numbers of pairs, so anybody who knows these knows the category of each test pair.
    """
    train: list[Pair] = []
    test: list[Pair] = []
    for pairs in categories:
        for part, positions in zip((train, test), _positions(len(pairs), test_size, few), strict=True):
            part.extend(pairs[position] for position in positions)
    random = Random(0) if secret is None else secret_random(map(secret, test))
    random.shuffle(test)
    return train, test


@cache  # the drawn positions depend only on the number of pairs
def _positions(count: int, test_size: float, few_pairs: int) -> tuple[list[int], list[int]]:
    positions = list(range(count))
    if count >= few_pairs:
        return hold_out(positions, test_size)
    return (positions[:-1], positions[-1:]) if count > 1 else (positions, [])


def with_pairs(document: Mapping[str, Any], pairs: Sequence[Pair]) -> dict[str, Any]:
    """A copy of the document with these pairs instead of its own."""
    return {
        **document,
        "annotations": [annotation for annotation, _ in pairs],
        "images": [image for _, image in pairs],
    }


def unlabelled(document: Mapping[str, Any], images: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The document of a test set: `images`, licences and info, without annotations."""
    return {"images": images, "licenses": document["licenses"], "info": document["info"]}


def herbarium(raw: Download, folder: str, document: Mapping[str, Any], edition: Edition) -> Preparation:
    """Prepare Herbarium 2020 and 2021. A fifth of each category becomes the test set and is renumbered.

    `document` is the metadata of `folder`/train ("" for the top level). The images are in the same folder.
    """
    import pandas as pd

    prefix = f"{folder}/" if folder else ""

    def photograph(pair: Pair) -> Member:
        return raw.file(f"{prefix}train/{pair.image['file_name']}")

    secret = photograph if edition == "v2" else None  # v2 fixes order-from-a-constant-seed
    train, test = hold_out_by_category(pairs_by_category(document), 0.2, secret=secret)
    images = [
        {**image, "id": str(k), "file_name": f"images/{k // 1000:03d}/{k}.jpg"} for k, (_, image) in enumerate(test)
    ]
    answers = pd.DataFrame({"Id": range(len(test)), "Predicted": [pair.category for pair in test]})
    out = Preparation()
    out.public.json(f"{prefix}train/metadata.json", with_pairs(document, train), **JSON)
    out.public.json(f"{prefix}test/metadata.json", unlabelled(document, images), **JSON)
    names = [f"{prefix}train/{image['file_name']}" for _, image in train]
    out.public.copies(zip(names, raw.files(names), strict=True))
    photographs = raw.files(f"{prefix}train/{image['file_name']}" for _, image in test)
    out.public.copies(zip((f"{prefix}test/{image['file_name']}" for image in images), photographs, strict=True))
    out.private.table("answers.csv", answers)
    out.public.table("sample_submission.csv", answers.assign(Predicted=0))
    return out
