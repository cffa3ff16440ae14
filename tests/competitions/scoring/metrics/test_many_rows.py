"""Metrics on arrays of all rows: pairs, items, voxels, against the same done one by one."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import directed_hausdorff

from competitions.scoring.metrics.boxes3d import Box3D, Boxes3D, joint_groups, mean_average_precision_3d
from competitions.scoring.metrics.items import Items, count_distinct, distinct, joint_keys, keys_of_known, split_items
from competitions.scoring.metrics.pairing import first_come, pairs_of_equal
from competitions.scoring.metrics.ranking import kendall_tau_orders, mean_average_precision_at_k
from competitions.scoring.metrics.text import levenshtein
from competitions.scoring.metrics.volumes import Voxels, hausdorff_of_voxels, scaled_hausdorff
from tests.competitions.scoring.metrics import references


@pytest.mark.parametrize("most", [1, 7, 1 << 20])
def test_pairs_of_equal_come_in_order_however_many_at_a_time(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("competitions.scoring.metrics.pairing._BATCH_PAIRS", most)
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 5, 20), rng.integers(0, 6, 15)
    found = [pair for i, j in pairs_of_equal(a, b) for pair in zip(i.tolist(), j.tolist(), strict=True)]
    assert found == [(i, j) for i in range(20) for j in range(15) if a[i] == b[j]]


@pytest.mark.parametrize("rounds", [0, 1, 20])
def test_first_come_is_the_greedy_choice(rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("competitions.scoring.metrics.pairing._MAX_ROUNDS", rounds)
    rng = np.random.default_rng(1)
    for _ in range(50):
        a, b = rng.integers(0, 8, (2, 30))
        used: set[tuple[str, int]] = set()
        expected = []
        for i, j in zip(a.tolist(), b.tolist(), strict=True):
            expected.append(("a", i) not in used and ("b", j) not in used)
            if expected[-1]:
                used |= {("a", i), ("b", j)}
        assert first_come(a, b).tolist() == expected


def test_a_long_chain_is_decided_to_its_end() -> None:
    count = 1000  # each pair waits for the one before it
    a = np.arange(count) // 2
    b = (np.arange(count) + 1) // 2
    assert first_come(a, b).tolist() == [k % 2 == 0 for k in range(count)]


@pytest.mark.parametrize("separator", [None, " "])
def test_items_are_split_as_python_splits_them(separator: str | None) -> None:
    for cells in (["a b", "c"], ["a  b", " c "], ["", "a", " "], ["a\tb\nc"], ["a\x1cb", "\x1f"], ["é\u2003b", "日"]):
        found = split_items(pa.array(cells), separator)
        lists = [cell.split(separator) for cell in cells]
        assert found.sizes.tolist() == list(map(len, lists))
        assert [str(value) for value in found.values] == [item for row in lists for item in row]


@given(
    cells=st.lists(st.text("ab \t\n\x0b\x0c\r\x1b\x1c\x1f\x7f\x85é\xa0\u180e\u200b\u2003日", max_size=6), max_size=6)
)
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_any_white_space_separates_items_as_in_python(kind: pa.DataType, cells: list[str]) -> None:
    found = split_items(pa.array(["é a", *cells, "b"], kind)[1:-1])
    assert found.sizes.tolist() == [len(cell.split()) for cell in cells]
    assert [str(value) for value in found.values] == [item for cell in cells for item in cell.split()]


def test_joint_keys_are_equal_for_equal_items_of_a_row() -> None:
    rows, others = [["x", "y"], ["x"], []], [["y"], ["z", "x"], ["x"]]
    a, b = joint_keys(Items.of(rows), Items.of(others))
    names = [(k, item) for k, row in enumerate(rows) for item in row]
    other_names = [(k, item) for k, row in enumerate(others) for item in row]
    assert (a[:, None] == b).tolist() == [[name == other for other in other_names] for name in names]
    numbers = joint_keys(Items.of([[1, 2]]), Items.of([[2, 3]]))
    assert numbers[0][1] == numbers[1][0]


@pytest.mark.parametrize("kind", ["text", "arrow", "numbers"])
def test_keys_of_known_items_are_those_of_all_that_can_be_equal(kind: str) -> None:
    rng = random.Random(4)
    for _ in range(50):
        sides = [[rng.choices("abcdé", k=rng.randint(0, 4)) for _ in range(rng.randint(0, 6))] for _ in range(2)]
        if kind == "numbers":
            a, b = (Items.of([[*map(ord, row)] for row in side]) for side in sides)
        elif kind == "arrow":
            a, b = (split_items(pa.array([" ".join(row) for row in side], pa.string())) for side in sides)
        else:
            a, b = map(Items.of, sides)
        names, others = ([(k, item) for k, row in enumerate(side) for item in row] for side in sides)
        mine, (places, rows, keys) = keys_of_known(a, b)
        assert rows.tolist() == [others[place][0] for place in places]
        assert all(less < more for (k, less), (n, more) in pairwise(zip(a.rows, mine, strict=True)) if k != n)
        known = {item for _, item in names}
        assert {place for place, (_, item) in enumerate(others) if item in known} <= set(places.tolist())
        equal = (mine[:, None] == keys).tolist()
        assert equal == [[name == others[place] for place in places] for name in names]


def test_different_items_are_counted_row_by_row() -> None:
    rng = random.Random(2)
    rows, others = ([rng.choices("abcdé", k=rng.randint(0, 6)) for _ in range(50)] for _ in range(2))
    pairs = [(set(row), set(other)) for row, other in zip(rows, others, strict=True)]
    expected = [[len(a) for a, _ in pairs], [len(b) for _, b in pairs], [len(a & b) for a, b in pairs]]
    as_text = [split_items(pa.array([" ".join(row) for row in side])) for side in (rows, others)]
    for a, b in (as_text, [Items.of(rows), Items.of(others)]):
        assert [counts.tolist() for counts in count_distinct(a, b)] == expected
        assert Items.of(rows).among(b).sizes.tolist() == [len(row) for row in rows], "each occurs somewhere"
    assert count_distinct(Items.of([[], []]), Items.of([[], []]))[2].tolist() == [0, 0]


@pytest.mark.parametrize("last", [0xE000, 0x10FFFF])
def test_tokens_are_compared_however_many_differ(last: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("competitions.scoring.metrics.text._LAST_CODE_POINT", last)
    assert levenshtein([[1, 2, 3], []], [[1, -2], [7]]).tolist() == [2, 1]


def test_orders_of_many_lengths() -> None:
    rng = random.Random(3)
    for _ in range(40):
        rows = [[str(k) for k in range(rng.randint(1, 90))] for _ in range(5)] + [["a", "b"]]
        truth, guess = ([rng.sample(row, len(row)) for row in rows] for _ in range(2))
        inversions = 0
        for true, found in zip(truth, guess, strict=True):
            ranks = [found.index(item) for item in true]
            inversions += sum(a > b for k, a in enumerate(ranks) for b in ranks[k + 1 :])
        pairs = sum(len(row) * (len(row) - 1) for row in rows)
        assert kendall_tau_orders(truth, guess) == 1 - 4 * inversions / pairs


def test_lists_of_unequal_number_stop_at_the_shorter_one() -> None:
    assert mean_average_precision_at_k([{"a"}], [["a"], ["b"]], 3) == 1.0
    assert mean_average_precision_at_k([{"a"}, {"b"}], [["x", "a"]], 3) == 0.5


def test_arrow_text_has_the_distances_of_python_text() -> None:
    rng = random.Random(4)
    a, b = (["".join(rng.choices("abé日", k=rng.randint(0, 9))) for _ in range(200)] for _ in range(2))
    b[:50] = a[:50]
    assert levenshtein(pa.array(a), pa.array(b)).tolist() == levenshtein(a, b).tolist()


@pytest.mark.parametrize("seed", range(4))
def test_voxels_in_any_order_are_a_volume(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (6, 40, 30)
    centre, radius = rng.uniform(8, 20, 2), rng.uniform(4, 9)
    z, y, x = np.indices(shape)
    truth = (y - centre[0]) ** 2 + (x - centre[1]) ** 2 + 4 * (z - 3) ** 2 < radius**2
    guess = (y - centre[0] - 6) ** 2 + (x - centre[1] + 2) ** 2 + 3 * (z - 2) ** 2 < radius**2
    guess |= rng.random(shape) < 0.002
    a, b = (np.argwhere(volume) / np.array(shape) for volume in (truth, guess))
    expected = max(directed_hausdorff(a, b)[0], directed_hausdorff(b, a)[0]) / np.sqrt(3)
    voxels = np.argwhere(guess)
    repeated = rng.permutation(np.concatenate([voxels, voxels[:10]]))
    assert scaled_hausdorff(truth, guess) == pytest.approx(expected, rel=1e-12)
    found = Voxels(np.zeros(len(repeated), dtype=np.int64), *repeated.T)
    assert hausdorff_of_voxels(Voxels.of(truth), found, [shape]) == pytest.approx([expected], rel=1e-12)


def together(volumes: list[np.ndarray]) -> Voxels:
    parts = [np.nonzero(volume) for volume in volumes]
    slices, rows, columns = (np.concatenate(axis) for axis in zip(*parts, strict=True))
    return Voxels(np.repeat(np.arange(len(volumes)), [len(part[0]) for part in parts]), slices, rows, columns)


def test_many_volumes_give_what_each_gives() -> None:
    rng = np.random.default_rng(0)
    shapes = [(rng.integers(1, 5), *rng.integers(3, 20, 2)) for _ in range(60)]
    densities = rng.choice([0, 0.002, 0.05, 0.6], (2, 60))
    truth, guesses = (
        [rng.random(shape) < share for shape, share in zip(shapes, side, strict=True)] for side in densities
    )
    guesses[:10] = truth[:10]
    expected = [scaled_hausdorff(true, guess) for true, guess in zip(truth, guesses, strict=True)]
    found = hausdorff_of_voxels(together(truth), together(guesses), shapes)
    assert np.array_equal(found, expected, equal_nan=True)
    assert {0.0, 1.0} < set(found[~np.isnan(found)])
    assert np.isnan(found).any()


def test_boxes_as_arrays_score_as_boxes() -> None:
    rng = np.random.default_rng(5)

    def boxes(count: int) -> list[Box3D]:
        low, high = [0, 0, 0, 1, 2, 1, -3], [9, 9, 1, 3, 5, 2, 3]
        return [
            Box3D(str(rng.choice(["car", "bus"])), float(rng.random()), *row)
            for row in rng.uniform(low, high, (count, 7))
        ]

    truth, guesses = [[*boxes(6)] for _ in range(4)], [[*boxes(9)] for _ in range(4)]
    score = mean_average_precision_3d(truth, guesses)
    assert score == pytest.approx(references.mean_average_precision_3d(truth, guesses))
    assert mean_average_precision_3d(Boxes3D.of(truth), Boxes3D.of(guesses)) == score
    groups, others = joint_groups(Boxes3D.of(truth), Boxes3D.of(truth))
    assert (groups == others).all()


@pytest.mark.parametrize("make", [list, pa.array, lambda rows: np.array(rows, dtype=object)])
def test_distinct_values_are_in_the_order_of_their_first_appearance(make: Callable[[list[str]], Any]) -> None:
    codes, found = distinct(make(["b", "a", "b", "", "nan", "a"]))
    assert (codes.tolist(), found) == ([0, 1, 0, 2, 3, 1], ["b", "a", "", "nan"])


def test_lists_of_tokens_as_arrays_have_the_distances_of_lists() -> None:
    rng = np.random.default_rng(6)
    sides = [[rng.integers(0, 9, rng.integers(0, 12)).astype(str).tolist() for _ in range(300)] for _ in range(2)]
    expected = levenshtein(*sides)
    texts = [pa.array([" ".join(row) for row in side]) for side in sides]
    assert levenshtein(*(split_items(side) for side in texts)).tolist() == expected.tolist()
    with pytest.raises(ValueError, match="300 and 299 rows"):
        levenshtein(split_items(texts[0]), split_items(texts[1][1:]))
