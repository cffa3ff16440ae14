"""`mlebench.env`: an environment in this process."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import ValidationError

import mlebench.env
from common.errors import UserError
from common.settings import get_settings
from storage.training_mark import marked
from tests.stores import Store, put_dataset

SAMPLE = {"type": "run", "command": "cp $SAMPLE_SUBMISSION submission/submission.csv"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(str(tmp_path_factory.mktemp("env") / "store"))
    put_dataset(store, "breast-cancer")
    return store


def test_an_episode_on_a_small_variant(store: Store) -> None:
    with mlebench.env.make(
        "breast-cancer", rows=60, store=store.root, backend="process", allow=["untrusted"], limits={"steps": 3}
    ) as env:
        observation, info = env.reset(seed=1)
        assert "Size of this variant" in observation["description"]
        assert info["episode_id"]
        observation, reward, terminated, truncated, info = env.step(
            {"type": "run", "command": "wc -l < data/train.csv; echo $SEED"}
        )
        assert observation["stdout"] == "61\n1\n"
        assert (reward, terminated, truncated, info) == (0.0, False, False, {})
        env.step(SAMPLE)
        _, reward, terminated, truncated, info = env.step({"type": "submit"})
        assert (terminated, truncated) == (True, False)
        assert (info["valid"], info["score"], info["improvement"]) == (True, 0.5, 0.0)
        with pytest.raises(UserError, match="has ended: reset"):
            env.step({"type": "submit"})
        env.reset()
        with pytest.raises(ValidationError):
            env.step({"type": "nothing"})
    assert marked(store) is None
    assert not list(Path(get_settings().scratch).glob("episodes/process-*"))


def test_seeds_are_those_of_gymnasium() -> None:
    """A seed sets what later episodes without one draw; the first one without a seed is at random."""

    class Begun:
        episode = SimpleNamespace(ended=True)

        def begin(self, seed: int | None) -> Any:
            return SimpleNamespace(
                id="x", seed=seed, episode=self.episode, begun=lambda: SimpleNamespace(model_dump=dict)
            )

    env = mlebench.env.Environment(cast("Any", Begun()))
    assert env.reset()[1] == {"episode_id": "x", "seed": None}  # which `Episodes` draws
    series = [[env.reset(seed=seed, options={})[1]["seed"] for seed in (7, None, None)] for _ in range(2)]
    assert series[0] == series[1]
    assert series[0][0] == 7
    assert len(set(series[0])) == 3


def test_the_policy_of_the_documentation_improves(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "training.md").read_text("utf-8")
    example = next(block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "mlebench.env" in block)
    monkeypatch.setenv("MLEBENCH_STORE", store.root)
    get_settings.cache_clear()
    try:
        exec(compile(example, "docs/training.md", "exec"), {})
    finally:
        monkeypatch.undo()
        get_settings.cache_clear()
    first, last = map(float, re.findall(r"0\.\d\d", capsys.readouterr().out))
    assert last > first + 0.05


def test_what_must_not_be_trained_on_is_refused(store: Store) -> None:
    with pytest.raises(UserError, match="whole test set"):
        mlebench.env.make("breast-cancer", store=store.root)
    with pytest.raises(UserError, match="no episode is in progress"):
        mlebench.env.Environment(None).step({"type": "submit"})  # type: ignore[arg-type]
