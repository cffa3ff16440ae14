"""Run-length masks against painted ones."""

from __future__ import annotations

import numpy as np
import pytest

from competitions.scoring.metrics.rle_masks import dice, encode_rle, iou, overlap, parse_all, parse_rle, to_mask


def painted(cell: str, pixels: int) -> np.ndarray:
    """The published decoder, with an error for each of its refusals."""
    if not cell.strip():
        return np.zeros(pixels, dtype=bool)
    numbers = np.array([int(token) for token in cell.split()])
    starts, lengths = numbers[0::2], numbers[1::2]
    if (np.diff(starts) < 0).any() or (starts <= 0).any() or (lengths <= 0).any():
        raise ValueError
    starts, ends = starts - 1, starts - 1 + lengths
    mask = np.zeros(pixels, dtype=bool)
    for start, end in zip(starts[: len(ends)], ends, strict=True):
        if mask[start:end].any():
            raise ValueError
        mask[start:end] = True
    return mask


@pytest.mark.parametrize("seed", range(300))
def test_every_text_is_decoded_or_refused_as_published(seed: int) -> None:
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0 if seed % 7 == 0 else 1, [14, 5] * 10)[: rng.integers(0, 9)]
    if seed % 2:
        numbers[0::2].sort()
    cell = " ".join(map(str, numbers))
    try:
        expected = painted(cell, 10)
    except ValueError:
        with pytest.raises(ValueError, match=r"runs|starts"):
            parse_rle(cell, 10)
    else:
        runs = parse_rle(cell, 10)
        assert to_mask(runs, 10).tolist() == expected.tolist()
        assert runs.area == expected.sum()


@pytest.mark.parametrize(
    ("cell", "pixels"),
    [
        ("", []),
        ("  ", []),
        ("5", []),
        ("2 1 4", [1, 3]),
        ("+1 1_0", [*range(10)]),
        ("9 5", [8, 9]),
        ("11 3", []),
        ("1 1 2 1", [0, 1]),
        (f"3 {10**30}", [*range(2, 10)]),
        (f"{10**30} 3", []),
        ("9 5 10 1"[:3], [8, 9]),
    ],
)
def test_accepted(cell: str, pixels: list[int]) -> None:
    assert np.flatnonzero(to_mask(parse_rle(cell, 10), 10)).tolist() == pixels


@pytest.mark.parametrize(
    ("cell", "hint"),
    [
        ("1.0 2", "whole numbers"),
        ("salt", "whole numbers"),
        ("1,2", "whole numbers"),
        ("1 2 5 1 9", "not 5 numbers"),
        ("0 3", "1 or more"),
        ("-1", "1 or more"),
        ("3 0", "1 or more"),
        ("3 1 1 1", "must not decrease"),
        ("1 3 3 1", "overlap"),
        ("1 1 1 1", "overlap"),
        ("1 3 2", "overlap"),
        ("9 9 10 1", "overlap"),
        ("20 1 19 1", "must not decrease"),
    ],
)
def test_refused(cell: str, hint: str) -> None:
    with pytest.raises(ValueError, match=hint):
        parse_rle(cell, 10)


@pytest.mark.parametrize("seed", range(20))
def test_metrics_without_painting(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.random((2, 200)) < [[0.3], [seed / 20]]
    p, q = parse_all([encode_rle(a), encode_rle(b)], 200)
    assert to_mask(p, 200).tolist() == a.tolist()
    assert overlap(p, q) == overlap(q, p) == (a & b).sum()
    assert dice(p, q) == pytest.approx(2 * (a & b).sum() / (a.sum() + b.sum()))
    assert iou(p, q) == pytest.approx((a & b).sum() / (a | b).sum())


def test_empty_masks() -> None:
    none, some = parse_rle("", 10), parse_rle("1 3", 10)
    assert dice(none, none) == iou(none, none) == 1
    assert np.isnan(dice(none, none, empty=float("nan")))
    assert dice(none, some) == iou(some, none) == overlap(none, some) == 0
    assert encode_rle(np.zeros(5)) == ""


def test_masks_of_a_billion_pixels() -> None:
    a, b = parse_rle("1 1000000000", 2**40), parse_rle("500000001 1000000000", 2**40)
    assert overlap(a, b) == 500_000_000


@pytest.mark.parametrize(
    ("cell", "hint"), [("4", "pairs"), ("1 3 9", "pairs"), ("8 4", "beyond the last of 10"), ("11 1", "beyond")]
)
def test_strictness_refuses_what_is_accepted_as_published(cell: str, hint: str) -> None:
    parse_rle(cell, 10)
    with pytest.raises(ValueError, match=hint):
        parse_rle(cell, 10, strict=True)


def test_strictness_accepts_runs_up_to_the_last_pixel() -> None:
    assert parse_rle("1 3 8 3", 10, strict=True).area == 6
