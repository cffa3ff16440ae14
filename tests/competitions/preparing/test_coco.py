from random import Random

import pytest
from sklearn.model_selection import train_test_split

from competitions.errors import DownloadError
from competitions.preparing import coco


def document(*counts: int) -> dict:
    """Categories 10, 11, ... with the given numbers of images, interleaved."""
    labels = [10 + category for place in range(max(counts)) for category, n in enumerate(counts) if place < n]
    return {
        "annotations": [{"id": 100 + k, "image_id": k, "category_id": label} for k, label in enumerate(labels)],
        "images": [{"id": k, "file_name": f"{k}.jpg"} for k, _ in enumerate(labels)],
        "categories": [],
        "licenses": ["free"],
        "info": {"year": 2020},
    }


def test_pairs_are_grouped_in_order_of_first_appearance() -> None:
    groups = coco.pairs_by_category(document(1, 3))

    assert [[pair.image["id"] for pair in group] for group in groups] == [[0], [1, 2, 3]]
    assert [group[0].category for group in groups] == [10, 11]


def test_lists_that_are_not_parallel_are_reported() -> None:
    shifted, cut = document(2, 2), document(2, 2)
    shifted["images"].reverse()
    cut["images"].pop()

    with pytest.raises(DownloadError, match="do not match"):
        coco.pairs_by_category(shifted)
    with pytest.raises(DownloadError, match="4 annotations and 3 images"):
        coco.pairs_by_category(cut)


def test_each_category_gives_its_share_or_its_last_image_or_nothing() -> None:
    groups = coco.pairs_by_category(document(1, 4, 11))

    train, test = coco.hold_out_by_category(groups, 0.2)

    large_train, large_test = train_test_split(groups[2], test_size=0.2, random_state=0)
    expected = [groups[1][-1], *large_test]
    Random(0).shuffle(expected)
    assert train == [*groups[0], *groups[1][:-1], *large_train]
    assert test == expected


def test_the_order_of_test_pairs_depends_on_their_secrets() -> None:
    groups = coco.pairs_by_category(document(20, 20, 20))

    plain, one, same, other = (
        coco.hold_out_by_category(groups, 0.2, secret=secret)[1]
        for secret in (
            None,
            lambda pair: pair.image["id"],
            lambda pair: pair.image["id"],
            lambda pair: -pair.image["id"],
        )
    )

    assert one == same
    assert one != other != plain != one
    assert sorted(map(str, one)) == sorted(map(str, other)) == sorted(map(str, plain))


def test_without_a_rule_for_few_images_every_category_is_drawn_alike() -> None:
    groups = coco.pairs_by_category(document(3))

    train, test = coco.hold_out_by_category(groups, 0.2, few=0)

    assert [train, test] == train_test_split(groups[0], test_size=0.2, random_state=0)


def test_parts_of_a_document_share_its_other_keys() -> None:
    whole = document(2, 1)
    (first, _), _ = coco.pairs_by_category(whole)

    part = coco.with_pairs(whole, [first])

    assert part == {**whole, "annotations": [first.annotation], "images": [first.image]}
    assert coco.unlabelled(whole, [first.image]) == {
        "images": [first.image],
        "licenses": ["free"],
        "info": {"year": 2020},
    }


def test_unexpected_keys_are_reported() -> None:
    coco.require_keys({"a": 1, "b": 2}, "b", "a")
    with pytest.raises(DownloadError, match="must hold a, not a, b"):
        coco.require_keys({"a": 1, "b": 2}, "a")
