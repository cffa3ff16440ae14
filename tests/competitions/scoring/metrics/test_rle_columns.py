"""Masks of many images at once: each gets what the functions for one mask give."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from competitions.scoring.metrics import rle_columns, rle_masks
from competitions.scoring.metrics.rle_columns import parse_column
from competitions.scoring.metrics.rle_masks import parse_rle

ODD = [
    "", " ", "5", "3 2 9", "1 2 3", "a b", "1 -2", "0 3", "1_0 2", "+1 2", " 1  2 ", "1\t2", "2 3\n5 1", "1 2 2 2",
    "99999999999999999999 1", "٣ 1", "1 2 3 4 5", "30 5", "1 40", "5 1 5 1",
]  # fmt: skip


def cell(rng: random.Random) -> str:
    if rng.random() < 0.1:
        return rng.choice(ODD)
    tokens, place = [], 1
    for _ in range(rng.randint(0, 5)):
        place += rng.randint(0, 6)
        length = rng.randint(1, 5) if rng.random() < 0.98 else 0
        tokens += [place, length]
        place += length if rng.random() < 0.97 else -1
    return " ".join(map(str, tokens))


def outcome(call: Callable[[], Any]) -> Any:
    """What the call returns, or the message of its ValueError."""
    try:
        return call()
    except ValueError as error:
        return error.args[0]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("at_once", [1, 2, 2_000])
@pytest.mark.parametrize("seed", range(3))
def test_each_image_is_as_if_it_were_alone(
    seed: int, at_once: int, strict: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rle_columns, "_BATCH_ROWS", at_once)
    rng = random.Random(seed)
    for _ in range(300):
        cells = [cell(rng) for _ in range(rng.randint(0, 6))]
        sizes = [rng.randint(1, 40) for _ in cells]
        expected = outcome(lambda: list(map(partial(parse_rle, strict=strict), cells, sizes)))  # noqa: B023
        found = outcome(lambda: parse_column(cells, sizes, strict=strict))  # noqa: B023
        if isinstance(expected, str) or isinstance(found, str):
            assert found == expected
            continue
        for row, mask in enumerate(expected):
            np.testing.assert_array_equal(np.stack(found.mask(row)), np.stack(mask))
        assert found.areas.tolist() == [mask.area for mask in expected]
        others = parse_column(cells[1:], sizes[1:])
        pairs = list(pairwise(expected))
        assert rle_columns.overlaps(found, others).tolist() == [rle_masks.overlap(a, b) for a, b in pairs]
        for empty in (1.0, np.nan):
            np.testing.assert_array_equal(
                rle_columns.dices(found, others, empty), [rle_masks.dice(a, b, empty) for a, b in pairs]
            )
            np.testing.assert_array_equal(
                rle_columns.ious(found, others, empty), [rle_masks.iou(a, b, empty) for a, b in pairs]
            )


def test_the_error_says_which_cell_is_wrong() -> None:
    with pytest.raises(ValueError, match="runs overlap") as caught:
        parse_column(["1 3", "", "1 3 2 2"], 9)
    assert caught.value.args == ("runs overlap", 2)


def test_images_of_a_billion_pixels_take_no_more_memory_than_small_ones() -> None:
    masks = parse_column(["1 1000000000000", "5 1"], 10**12)
    assert rle_columns.overlaps(masks, masks).tolist() == [10**12, 1]
