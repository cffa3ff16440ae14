from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.isolation import Isolation
from tests import images
from tests.services import skip_without
from tests.stores import Store, put_dataset
from training.actions import Action
from training.episode import Episode, EpisodeLimits, Step
from training.episodes import Episodes, TrainingOptions

COMPETITION = "breast-cancer"
PROCESS = Isolation("process", network="none", allow_untrusted=True)
DOCKER = Isolation("docker", network="none")
SAMPLE = "cp $SAMPLE_SUBMISSION submission/submission.csv"


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store with a small dataset."""
    store = Store(str(tmp_path_factory.mktemp("training") / "store"))
    put_dataset(store, COMPETITION)
    return store


@pytest.fixture
def make_episodes(store: Store) -> Iterator[Callable[..., Episodes]]:
    """Episodes in processes of this machine, or in containers with `isolation=DOCKER`."""
    opened: list[Episodes] = []

    def make(limits: EpisodeLimits | None = None, isolation: Isolation = PROCESS, **options: Any) -> Episodes:
        if isolation.backend == "docker":
            skip_without(images.without_base_image())
        options = {"competitions": (COMPETITION,), "allow_test_scores": True, **options}
        chosen = TrainingOptions(isolation=isolation, limits=limits or EpisodeLimits(), **options)
        opened.append(Episodes(store, chosen))
        return opened[-1]

    yield make
    for episodes in opened:
        episodes.close()


@pytest.fixture(params=[PROCESS, pytest.param(DOCKER, marks=pytest.mark.service("docker"))], ids=["process", "docker"])
def episode(request: pytest.FixtureRequest, make_episodes: Callable[..., Episodes]) -> Episode:
    """An episode of each backend."""
    return make_episodes(isolation=request.param).begin().episode


def act(episode: Any, type: str, **fields: Any) -> Step:
    """Have an episode carry out an action."""
    step = episode.step(Action.model_validate({"type": type, **fields}))
    assert isinstance(step, Step)
    return step


def run(episode: Any, command: str, **fields: Any) -> str:
    """What a command writes to its output."""
    return act(episode, "run", command=command, **fields).observation.stdout or ""


def folders(scratch: Path) -> list[Path]:
    """The work directories of sandboxes."""
    return sorted(path for path in scratch.glob("episodes/*/*") if path.is_dir())
