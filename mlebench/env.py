"""An environment in this process to train or try agents in, with the methods of gymnasium.

    env = mlebench.env.make("digits", rows=200, store="store")
    observation, info = env.reset()
    observation, reward, terminated, truncated, info = env.step({"type": "run", "command": "ls data"})
    env.close()

Actions and observations are dictionaries; `training.actions` says what is in them. gymnasium need not be installed.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import replace
from typing import Any, Literal, Self

from common.errors import UserError
from competitions.variant import VariantName
from sandbox.isolation import Isolation
from tasks.variants import derive_variant
from tasks.wiring.context import open_store
from training.actions import Action
from training.episode import EpisodeLimits
from training.episodes import DRAWN_SEEDS, Episodes, Running, TrainingOptions

Allowed = Literal["eval", "test-scores", "untrusted"]


class Environment:
    """One episode at a time. Close it, or use it in a `with` statement."""

    def __init__(self, episodes: Episodes) -> None:
        """Begin nothing yet: that is what `reset` is for."""
        self._episodes = episodes
        self._running: Running | None = None
        self._seeds: random.Random | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """End the episode, if one is in progress, and begin another one.

        Args:
            seed: the seed that programs in the sandbox find in SEED. Without one, it is drawn: from the seed that was
                given last, so that a series of episodes can be repeated, or at random if none was.
            options: nothing; gymnasium has this argument.

        Returns:
            The observation, and a dictionary with the id and the seed of the episode.
        """
        self._end()
        if seed is not None:
            self._seeds = random.Random(seed)
        elif self._seeds is not None:
            seed = self._seeds.randrange(DRAWN_SEEDS)
        self._running = self._episodes.begin(seed=seed)
        return self._running.begun().model_dump(), {"episode_id": self._running.id, "seed": self._running.seed}

    def step(self, action: dict[str, Any]) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Carry out an action.

        Returns:
            The observation, the reward, whether the agent has submitted, whether a limit was reached, and at the end
            what the reward consists of.

        Raises:
            UserError: no episode is in progress.
            pydantic.ValidationError: there is no such action.
        """
        if self._running is None:
            raise UserError("no episode is in progress: call reset")
        step = self._running.step(Action.model_validate(action))
        return step.observation.model_dump(), step.reward, step.terminated, step.truncated, step.observation.info

    def close(self) -> None:
        """End the episode and remove everything of it."""
        self._end()
        self._episodes.close()

    def _end(self) -> None:
        if self._running is not None and not self._running.episode.ended:
            self._running.close()
        self._running = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def make(
    competition_id: str,
    *,
    rows: int | None = None,
    variant_seed: int = 0,
    store: str | None = None,
    backend: str = "docker",
    limits: dict[str, Any] | None = None,
    allow: Collection[Allowed] = (),
) -> Environment:
    """An environment on the prepared dataset of a competition, or on a small variant, which is derived if missing.

    Args:
        competition_id: the competition.
        rows: units of train of the variant, such as 200; by default the whole competition.
        variant_seed: chooses the units of the variant.
        store: the store with the dataset; by default that of the settings.
        backend: `docker`, or `process`, which does not isolate and must be allowed.
        limits: fields of `training.episode.EpisodeLimits` that are to differ, such as `{"seconds": 600}`.
        allow: what would be refused otherwise. `eval`: the 22 Lite competitions, on which agents are evaluated.
            `test-scores`: the whole competition, whose rewards are scores on the benchmark's test set. `untrusted`:
            commands without isolation.

    Raises:
        UserError: the dataset is not prepared or must not be used, or this machine cannot run sandboxes.
    """
    opened = open_store(store)
    if rows is not None:
        variant = derive_variant(str(VariantName(competition_id, rows, variant_seed)), opened.root)
        competition_id = variant.competition_id
    options = TrainingOptions(
        (competition_id,),
        isolation=Isolation(backend, network="none", allow_untrusted="untrusted" in allow),
        limits=replace(EpisodeLimits(), **(limits or {})),
        allow_eval="eval" in allow,
        allow_test_scores="test-scores" in allow,
    )
    return Environment(Episodes(opened, options))
