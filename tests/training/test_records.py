"""What is recorded of episodes, and when their rewards are scores on the benchmark's test set."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from common.errors import UserError
from storage.tables import read_table
from storage.training_mark import MARK, marked
from tasks.variants import derive_variant
from tests.stores import Store
from tests.training.conftest import COMPETITION, act
from training.episodes import Episodes


def test_an_id_that_is_recorded_is_not_used_again(make_episodes: Callable[..., Episodes], store: Store) -> None:
    episodes = make_episodes(group="ids")
    running = episodes.begin(id="a")
    act(running, "submit")
    running.close()
    for server in (episodes, make_episodes(group="ids")):
        with pytest.raises(UserError, match="an episode a is recorded under the name ids"):
            server.begin(id="a")
    make_episodes(group="others").begin(id="a").close()
    assert store.read_json(store.url("episodes", "ids", "a.json"))["final_metrics"]["total_steps"] == 1
    assert read_table(store, "episodes", ["ids"]).episode_id.tolist() == ["a"]


def test_a_variant_with_more_than_half_of_the_test_set_counts_as_the_whole(
    make_episodes: Callable[..., Episodes], store: Store
) -> None:
    store.remove(store.url(*MARK.split("/")))
    small, large = (derive_variant(f"{COMPETITION}--rows{rows}-seed0", store.root) for rows in (60, 200))
    make_episodes(competitions=(small.competition_id,), allow_test_scores=False).begin().close()
    assert marked(store) is None
    with pytest.raises(UserError, match="more than half of it: train on fewer rows"):
        make_episodes(competitions=(large.competition_id,), allow_test_scores=False)
    running = make_episodes(competitions=(large.competition_id,)).begin()
    running.close()
    assert running.row()["test_scores"]
    assert marked(store) is not None
