"""Where scores lie on the scales of the page."""

import math

import pytest

from grading.medals import Thresholds, above_median, medal_for
from grading.page.scales import MEDAL_SCALE, medal_position, score_axis
from tests.grading.page.pages import HIGHER, LOWER


@pytest.mark.parametrize("thresholds", [HIGHER, LOWER])
@pytest.mark.parametrize("share", [-50, -1, -0.1, 0, 0.3, 0.5, 0.6, 0.75, 0.9, 1, 1.2, 9])
def test_a_mark_lies_in_the_band_of_the_medal_it_earned(thresholds: Thresholds, share: float) -> None:
    score = thresholds.median + share * (thresholds.gold - thresholds.median)
    bands = {None: (0, MEDAL_SCALE["bronze"]), "bronze": (MEDAL_SCALE["bronze"], MEDAL_SCALE["silver"])}
    bands |= {"silver": (MEDAL_SCALE["silver"], MEDAL_SCALE["gold"]), "gold": (MEDAL_SCALE["gold"], 100)}
    low, high = bands[medal_for(score, thresholds)]
    place = medal_position(score, thresholds)
    assert low < place < high
    assert (place > MEDAL_SCALE["median"]) == above_median(score, thresholds)


@pytest.mark.parametrize("thresholds", [HIGHER, LOWER])
def test_better_is_to_the_right_on_both_scales(thresholds: Thresholds) -> None:
    ascending = [thresholds.median + step / 20 * (thresholds.gold - thresholds.median) for step in range(-60, 60)]
    for at in (lambda s: medal_position(s, thresholds), score_axis(thresholds, ascending).at):
        places = [at(score) for score in ascending]
        assert places == sorted(places)


def test_where_all_medals_ask_for_the_same_score_the_scales_still_work() -> None:
    cactus = Thresholds(gold=1.0, silver=1.0, bronze=1.0, median=0.9991, teams=1221, lower_is_better=False)
    assert medal_position(1.0, cactus) > MEDAL_SCALE["gold"]
    assert MEDAL_SCALE["median"] < medal_position(0.9995, cactus) < MEDAL_SCALE["bronze"]
    flat = Thresholds(gold=0.0, silver=0.0, bronze=0.0, median=0.0, teams=3, lower_is_better=True)
    assert 0 < medal_position(5.0, flat) < MEDAL_SCALE["median"]
    assert math.isfinite(score_axis(flat, []).at(0.0))


def test_the_linear_axis_shows_all_thresholds_and_leaves_outliers_outside() -> None:
    axis = score_axis(LOWER, [0.15, 1e9])
    assert all(0 <= axis.at(getattr(LOWER, name)) <= 100 for name in MEDAL_SCALE)
    assert 0 <= axis.at(0.15) <= 100
    assert axis.at(1e9) < 0
