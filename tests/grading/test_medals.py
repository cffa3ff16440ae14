"""Which scores earn medals, and how many teams a score beats."""

import math

import pytest

from competitions import registry
from competitions.facts import CompetitionFacts
from grading.medals import (
    Thresholds,
    above_median,
    dense_reward,
    human_percentile,
    medal_for,
    thresholds_from_leaderboard,
)
from tests.prepared import PreparedCompetitions

ACCURACY = Thresholds(gold=0.9, silver=0.8, bronze=0.7, median=0.5, teams=1000, lower_is_better=False)
LOG_LOSS = Thresholds(gold=0.1, silver=0.2, bronze=0.3, median=0.5, teams=1000, lower_is_better=True)


@pytest.mark.parametrize("lower_is_better", [False, True])
def test_thresholds_are_the_scores_of_the_last_medal_places(lower_is_better: bool) -> None:
    ranks = range(1, 201)  # place 1 ... 200; among 200 teams gold is place 10, silver 40, bronze 80
    scores = [float(rank if lower_is_better else -rank) for rank in ranks]
    sign = 1 if lower_is_better else -1
    shuffled = scores[::3] + scores[1::3] + scores[2::3]
    assert thresholds_from_leaderboard(shuffled, lower_is_better) == Thresholds(
        gold=sign * 10,
        silver=sign * 40,
        bronze=sign * 80,
        median=sign * 100.5,
        teams=200,
        lower_is_better=lower_is_better,
    )


def test_a_leaderboard_of_trained_models_stays_marked_as_such() -> None:
    assert not thresholds_from_leaderboard([1.0, 2.0], lower_is_better=False, human=False).human


def test_a_leaderboard_score_without_a_rank_is_refused() -> None:
    with pytest.raises(ValueError, match="not a number"):
        thresholds_from_leaderboard([0.1, math.nan], lower_is_better=False)
    with pytest.raises(ValueError, match="at least one team"):
        thresholds_from_leaderboard([], lower_is_better=False)


@pytest.mark.parametrize(
    ("score", "thresholds", "medal"),
    [
        (0.95, ACCURACY, "gold"),
        (0.9, ACCURACY, "gold"),  # a tie earns the medal
        (math.nextafter(0.9, 0), ACCURACY, "silver"),
        (0.8, ACCURACY, "silver"),
        (0.7, ACCURACY, "bronze"),
        (0.69, ACCURACY, None),
        (0.05, LOG_LOSS, "gold"),
        (0.1, LOG_LOSS, "gold"),
        (math.nextafter(0.1, 1), LOG_LOSS, "silver"),
        (0.3, LOG_LOSS, "bronze"),
        (0.31, LOG_LOSS, None),
        (math.inf, LOG_LOSS, None),
        (math.nan, ACCURACY, None),
        (math.nan, LOG_LOSS, None),
        (None, ACCURACY, None),
    ],
)
def test_a_score_earns_the_best_medal_whose_threshold_it_reaches(
    score: float | None, thresholds: Thresholds, medal: str | None
) -> None:
    assert medal_for(score, thresholds) == medal


def test_where_all_thresholds_coincide_a_tie_earns_gold() -> None:
    cactus = Thresholds(gold=1.0, silver=1.0, bronze=1.0, median=0.9991, teams=1221, lower_is_better=False)
    assert medal_for(1.0, cactus) == "gold"
    assert medal_for(0.99999, cactus) is None


@pytest.mark.parametrize(
    ("score", "thresholds", "expected"),
    [
        (0.51, ACCURACY, True),
        (0.5, ACCURACY, False),  # strictly better, unlike medals
        (0.49, LOG_LOSS, True),
        (0.5, LOG_LOSS, False),
        (math.nan, ACCURACY, False),
        (math.nan, LOG_LOSS, False),
        (None, LOG_LOSS, False),
    ],
)
def test_above_median_is_strict(score: float | None, thresholds: Thresholds, expected: bool) -> None:
    assert above_median(score, thresholds) is expected


# leaf-classification (log loss) and aerial-cactus-identification (AUC): scores at top 0 %, 5 %, ... 100 %.
LEAF = [0.0, 0.0081, 0.01526, 0.02115, 0.02884, 0.0309, 0.03725, 0.04096, 0.05536, 0.07529, 0.10729]
LEAF += [0.15906, 0.28675, 0.46216, 0.65152, 0.68873, 0.81404, 1.24582, 1.56994, 4.59437, 34.18989]
CACTUS = [1.0, 1.0, 1.0, 0.9999, 0.9999, 0.9999, 0.9999, 0.9999, 0.9998, 0.9996, 0.9991]
CACTUS += [0.9982, 0.9969, 0.9946, 0.9911, 0.9855, 0.9741, 0.9634, 0.9173, 0.5095, 0.3363]


@pytest.mark.parametrize(
    ("score", "percentiles", "beaten"),
    [
        (-1.0, LEAF, 100),  # better than the winner
        (0.0, LEAF, 100),
        (0.01526, LEAF, 90),
        (0.10729, LEAF, 50),
        ((0.10729 + 0.15906) / 2, LEAF, 47.5),  # halfway between two known teams
        (34.18989, LEAF, 0),
        (99.0, LEAF, 0),
        (1.0, CACTUS, 90),  # a tenth of the teams has it too: they are not beaten
        (0.9999, CACTUS, 65),
        (0.1, CACTUS, 0),
    ],
)
def test_human_percentile_is_the_share_of_teams_beaten(
    score: float, percentiles: list[float] | None, beaten: float
) -> None:
    assert human_percentile(score, percentiles) == pytest.approx(beaten)


@pytest.mark.parametrize("percentiles", [LEAF, CACTUS])
def test_human_percentile_never_falls_when_the_score_improves(percentiles: list[float]) -> None:
    worst, best = percentiles[-1], percentiles[0]
    ascending = [worst + (best - worst) * step / 500 for step in range(-20, 521)]
    shares = [human_percentile(score, percentiles) for score in ascending]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0, 100)


@pytest.mark.parametrize(
    ("score", "percentiles"), [(None, LEAF), (math.nan, LEAF), (0.5, None), (0.5, []), (0.5, [1.0] * 21)]
)
def test_human_percentile_is_nan_where_it_cannot_be_known(score: float | None, percentiles: list[float] | None) -> None:
    assert math.isnan(human_percentile(score, percentiles))


def rewards(facts: CompetitionFacts, percentiles: list[float] | None) -> list[float]:
    """Rewards of scores that become better, from far below the leaderboard to far above it."""
    board = facts.leaderboard
    ends = [board.gold, board.silver, board.bronze, board.median, *(percentiles or [])]
    near = [limit + side * 1e-6 for limit in ends for side in (-1, 0, 1)]
    far = [min(ends) - 10.0**step for step in range(-3, 9)] + [max(ends) + 10.0**step for step in range(-3, 9)]
    scores = sorted([-math.inf, math.inf, *near, *far], reverse=facts.lower_is_better)
    return [dense_reward(score, Thresholds.of(facts), percentiles) for score in scores]


@pytest.mark.parametrize("competition_id", registry.list())
def test_the_dense_reward_of_every_competition_never_falls_from_0_to_1(competition_id: str) -> None:
    """With the leaderboard's percentiles where they are known, and as if they were not."""
    facts = registry.get(competition_id).facts
    for percentiles in (facts.leaderboard.percentiles, None):
        found = rewards(facts, percentiles)
        assert found == sorted(found)
        assert found[0] == pytest.approx(0, abs=0.01)
        assert found[-1] == pytest.approx(1)


@pytest.mark.parametrize("competition_id", registry.list())
def test_the_right_answers_have_a_dense_reward_near_1(competition_id: str, prepared: PreparedCompetitions) -> None:
    """A tenth of the teams of aerial-cactus-identification have the best score too: it beats the other nine tenths."""
    subject = prepared[competition_id]
    facts = subject.competition.facts
    score = subject.competition.grade(subject.path / facts.files.gold_submission, subject.path)
    reward = dense_reward(score, Thresholds.of(facts), facts.leaderboard.percentiles)
    assert "gold-not-optimal" in facts.oddities or reward > 0.89


def test_the_dense_reward_is_the_human_percentile_where_that_is_known() -> None:
    assert dense_reward(0.10729, LOG_LOSS, LEAF) == pytest.approx(0.5)
    assert dense_reward(1.0, ACCURACY, CACTUS) == pytest.approx(0.9)
    assert dense_reward(None, LOG_LOSS, LEAF) == dense_reward(math.nan, LOG_LOSS, None) == 0


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (0.1, 0.5 / 1.8),  # 0.4 below the median; a line from bronze through the median ends 0.5 below it
        (0.5, 0.5),
        (0.7, 0.7),  # halfway between median and bronze
        (0.9, 0.9),  # bronze: place 100 of 1,000
        (0.95, 0.95),  # silver: place 50
        (0.96, 0.988),  # gold: place 12
        (math.inf, 1.0),
        (-math.inf, 0.0),
    ],
)
def test_the_dense_reward_between_and_beyond_thresholds(score: float, expected: float) -> None:
    board = Thresholds(gold=0.96, silver=0.95, bronze=0.9, median=0.5, teams=1000, lower_is_better=False)
    assert dense_reward(score, board, None) == pytest.approx(expected)


@pytest.mark.parametrize("teams", [1, 2, 3, 10, 99, 1000])
def test_the_dense_reward_of_coinciding_thresholds_is_a_step(teams: int) -> None:
    board = Thresholds(1.0, 1.0, 1.0, 1.0, teams, lower_is_better=False)
    found = [dense_reward(score, board, None) for score in (0.5, 1.0, 1.5)]
    assert found == sorted(found)
    assert 0 <= found[0] <= 0.5 <= found[1] <= found[2] <= 1
