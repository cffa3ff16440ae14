"""Which places of a leaderboard earn medals, and the facts that follow from its scores."""

import pytest

from competitions.leaderboard import MedalPlaces, leaderboard_of, medal_places


@pytest.mark.parametrize(
    ("teams", "gold", "silver", "bronze"),
    [
        (1, 1, 1, 1),  # fractions round down, but somebody always wins
        (9, 1, 1, 3),
        (50, 5, 10, 20),  # detecting-insults-in-social-commentary
        (99, 9, 19, 39),
        (100, 10, 20, 40),
        (161, 10, 32, 64),  # denoising-dirty-documents
        (249, 10, 49, 99),
        (250, 10, 50, 100),
        (499, 10, 50, 100),
        (500, 11, 50, 100),
        (878, 11, 50, 100),  # nomad2018-predict-transparent-conductors
        (999, 11, 50, 100),
        (1000, 12, 50, 100),
        (1595, 13, 79, 159),  # leaf-classification
        (4539, 19, 226, 453),  # jigsaw-toxic-comment-classification-challenge
    ],
)
def test_medal_places_follow_the_number_of_teams(teams: int, gold: int, silver: int, bronze: int) -> None:
    assert medal_places(teams) == MedalPlaces(gold, silver, bronze)


def test_no_place_hangs_on_how_fractions_of_the_teams_round() -> None:
    for teams in range(10, 100, 10):
        assert medal_places(teams) == MedalPlaces(teams // 10, teams // 5, 2 * teams // 5)
    for teams in range(1000, 10_000, 500):
        assert medal_places(teams) == MedalPlaces(10 + teams // 500, teams // 20, teams // 10)


@pytest.mark.parametrize("teams", [0, -1])
def test_a_leaderboard_without_teams_is_refused(teams: int) -> None:
    with pytest.raises(ValueError, match="at least one team"):
        medal_places(teams)


@pytest.mark.parametrize(
    ("teams", "percentiles", "bronze"),
    [
        # From the figures of real leaderboards: with 1,000 or more teams bronze is what the team at top 10 % has.
        (1595, {5: 0.0081, 10: 0.01526, 15: 0.02115}, 0.01526),  # leaf-classification
        (1241, {5: 0.27044, 10: 0.29381, 15: 0.29661}, 0.29381),  # spooky-author-identification
    ],
)
def test_the_position_rule_agrees_with_published_thresholds(
    teams: int, percentiles: dict[int, float], bronze: float
) -> None:
    place = medal_places(teams).bronze
    share = min(percentiles, key=lambda percent: abs(percent - 100 * place / teams))
    assert percentiles[share] == bronze


@pytest.mark.parametrize("lower_is_better", [False, True])
def test_percentiles_go_from_the_best_score_to_the_last(lower_is_better: bool) -> None:
    board = leaderboard_of([float(score) for score in range(101)], lower_is_better)
    steps = [float(score) for score in range(0, 101, 5)]
    assert board.percentiles == (steps if lower_is_better else steps[::-1])
    assert leaderboard_of([3.0], lower_is_better).percentiles == [3.0] * 21
