"""The client of OpenEnv, as its package ships it, against `mlebench serve`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from competitions import registry
from grading.medals import Thresholds, dense_reward
from grading.workers import GradingPool
from storage.tables import read_table
from tests.readers import OPENENV, ROOT
from tests.stores import Store
from tests.training.conftest import COMPETITION
from tests.training.served import served
from tests.waiting import until

pytestmark = pytest.mark.service("openenv")

TRAIN = """\
import json, sys
from openenv.core.generic_client import GenericEnvClient

# Predicts by one column, and keeps the column and the direction with the best reward.
MODEL = '''
import csv, sys
column, sign = int(sys.argv[1]), float(sys.argv[2])
test, sample = (list(csv.reader(open(f"data/{name}.csv"))) for name in ("test", "sample_submission"))
values = [sign * float(row[column]) for row in test[1:]]
low, high = min(values), max(values)
with open("submission/submission.csv", "w") as file:
    file.write(",".join(sample[0]) + "\\\\n")
    for row, value in zip(test[1:], values):
        file.write(f"{row[0]},{(value - low) / (high - low)}\\\\n")
'''
rewards, submissions = [], []
with GenericEnvClient(base_url=sys.argv[1]).sync() as env:
    for column, sign in [(2, -1), (2, 1), (1, -1), (1, 1)]:
        env.reset(seed=0)
        env.step({"type": "write", "path": "code/model.py", "content": MODEL})
        ran = env.step({"type": "run", "command": f"$MLEBENCH_PYTHON code/model.py {column} {sign}"})
        assert ran.observation["exit_code"] == 0, ran.observation["stderr"]
        submissions.append(env.step({"type": "read", "path": "submission/submission.csv"}).observation["content"])
        result = env.step({"type": "submit"})
        assert result.done
        rewards.append(result.reward)
    state = env.state()
print(json.dumps({"rewards": rewards, "submissions": submissions, "state": state}))
"""

FLOOD = """\
import asyncio, json, sys
from openenv.core.generic_client import GenericEnvClient

async def episode(number, free):
    async with free, GenericEnvClient(base_url=sys.argv[1]) as env:
        await env.reset(seed=number)
        seen = (await env.step({"type": "run", "command": "ls code tmp; echo $SEED > code/seed"})).observation["stdout"]
        seed = (await env.step({"type": "run", "command": "cat code/seed"})).observation["stdout"]
        if number % 3:
            await env.step({"type": "submit"})
        return seen == "code:\\n\\ntmp:\\n" and seed == f"{number}\\n"

async def flood(count):
    free = asyncio.Semaphore(4)
    return await asyncio.gather(*(episode(number, free) for number in range(count)), return_exceptions=True)

results = asyncio.run(flood(int(sys.argv[2])))
print(json.dumps([each is True for each in results].count(True)), [each for each in results if each is not True][:3],
      file=sys.stderr)
print(json.dumps(sum(each is True for each in results)))
"""


TRL = """\
import inspect, json, re, sys
code = next(block for block in re.findall(r"```python\\n(.*?)```", open(sys.argv[3]).read(), re.DOTALL)
            if "class Competition" in block)
names = {}
exec(re.sub('URL = ".*"', f"URL = {sys.argv[1]!r}", code), names)
rewards = []
environment = names["Competition"]()
for submits in (True, False):
    told = [environment.reset(competition=sys.argv[2], prompt="ignored")]
    told.append(environment.run("cp $SAMPLE_SUBMISSION submission/submission.csv; echo copied"))
    if submits:
        told.append(environment.submit())
    rewards.append(environment.get_reward())
try:
    environment.run("true")
except ValueError as error:
    told.append(str(error))
print(json.dumps({"rewards": rewards, "told": told}))
"""


def client(script: str, *arguments: object) -> Any:
    """What a script of a client prints, run in its own environment."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    command = [str(OPENENV), "-c", script, *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280, env=clean)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


def test_a_scripted_policy_is_trained_with_rewards_that_a_second_computation_confirms(
    store: Store, tmp_path: Path
) -> None:
    with served(store, tmp_path, "-c", COMPETITION, "--name", "openenv") as server:
        trained = client(TRAIN, server.url)
    facts = registry.get(COMPETITION).facts
    rewards = []
    with GradingPool(registry.get(COMPETITION), store.local("prepared", "v1", COMPETITION, "k")) as grader:
        for number, content in enumerate(trained["submissions"]):
            (submission := tmp_path / f"{number}.csv").write_text(content)
            _, parts = grader.parts(submission)
            assert parts is not None
            assert parts.private is not None
            rewards.append(dense_reward(parts.private.score, Thresholds.of(facts), facts.leaderboard.percentiles))
    assert trained["rewards"] == rewards
    assert len(set(rewards)) > 1
    assert trained["state"]["done"]
    assert read_table(store, "episodes", ["openenv"]).reward.tolist() == rewards


def test_the_environment_for_trl_plays_an_episode(store: Store, tmp_path: Path) -> None:
    with served(store, tmp_path, "-c", COMPETITION, "--name", "trl") as server:
        played = client(TRL, server.url, COMPETITION, ROOT / "docs" / "training.md")
    assert len(set(played["rewards"])) == 1
    assert played["rewards"] == read_table(store, "episodes", ["trl"]).reward.tolist()
    begun, ran, ended = played["told"]
    assert "submission/submission.csv" in begun
    assert "copied" in ran
    assert ended == "the episode has ended"


@pytest.mark.slow
def test_a_flood_of_episodes_leaves_nothing_behind(store: Store, tmp_path: Path) -> None:
    import psutil

    with served(store, tmp_path, "-c", COMPETITION, "--name", "flood") as server:
        assert client(FLOOD, server.url, 200) == 200
        until(lambda: len(server.folders) <= 1, what="the end of the sandboxes, but for the one started ahead")
        descendants = psutil.Process(server.process.pid).children(recursive=True)
        assert len(descendants) < 12
    assert not list(tmp_path.glob("episodes/*-*"))
    rows = read_table(store, "episodes", ["flood"])
    assert len(rows) == 200
    assert sorted(rows.end.unique()) == ["abandoned", "submitted"]
