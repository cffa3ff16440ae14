"""An episode: actions in a sandbox, and a reward at its end."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from common.errors import UserError
from competitions import registry
from grading.medals import Thresholds, dense_reward
from grading.workers import GradingPool
from storage.tables import read_table
from storage.training_mark import MARK, marked
from storage.writers import StoreError
from tests import readers
from tests.sandbox.trajectory.test_atif import READ
from tests.stores import Store, put_dataset
from tests.training.conftest import COMPETITION, PROCESS, SAMPLE, act, folders, run
from tests.waiting import until
from training.episode import Episode, EpisodeLimits
from training.episodes import Episodes, NoSlot, TrainingOptions

MODEL = """\
import csv
from sklearn.linear_model import LogisticRegression
train, test = (list(csv.DictReader(open(f"data/{name}.csv"))) for name in ("train", "test"))
sample = list(csv.DictReader(open("data/sample_submission.csv")))
key, label = sample[0]
names = [name for name in test[0] if name != key]
rows = lambda table: [[float(row[name]) for name in names] for row in table]
model = LogisticRegression(max_iter=5000).fit(rows(train), [int(float(row[label])) for row in train])
with open("submission/submission.csv", "w") as file:
    file.write(f"{key},{label}\\n")
    for row, p in zip(test, model.predict_proba(rows(test))[:, 1]):
        file.write(f"{row[key]},{p}\\n")
"""

END = (
    'for each in /proc/[0-9]*; do [ "$(readlink $each/cwd)" = "$(pwd -P)" ] && '
    "grep -qs '[s]tart.sh' $each/cmdline && kill -9 ${each#/proc/}; done; sleep 1"
)
"""Kills the program that keeps a sandbox alive, and not those of other sandboxes of this machine."""


def test_it_begins_with_what_a_run_finds(episode: Episode) -> None:
    begun = episode.begun()
    assert begun.description == registry.get(COMPETITION).describe("v1")
    assert "Time: 30 minutes from now" in str(begun.instructions)
    assert {file.path for file in begun.files or ()} >= {"data/train.csv", "data/sample_submission.csv"}
    assert begun.left.steps == 100
    assert run(episode, "ls").split() == ["agent", "code", "data", *run(episode, "ls").split()[3:]]
    assert run(episode, "echo $COMPETITION_ID $TIME_LIMIT_SECONDS") == f"{COMPETITION} 1800\n"


def test_files_are_written_read_and_run(episode: Episode) -> None:
    act(episode, "write", path="code/deep/er/hello.py", content="print('hello, ä')")
    assert run(episode, "python3 code/deep/er/hello.py && touch code/deep/er/mine") == "hello, ä\n"
    assert act(episode, "read", path="/home/code/deep/er/hello.py").observation.content == "print('hello, ä')"
    assert act(episode, "read", path="code/deep/er/hello.py", offset=6).observation.content == "'hello, ä')"
    assert str(act(episode, "read", path="data/description.md").observation.content).startswith("# ")
    assert (
        act(episode, "read", path="code/none").observation.message == "Not done: code/none: No such file or directory."
    )


def test_a_submission_is_checked_without_a_score(episode: Episode) -> None:
    assert "No such file" in act(episode, "check").observation.message
    run(episode, "echo a,b > submission/submission.csv")
    checked = act(episode, "check").observation
    assert (checked.valid, checked.score) == (False, None)
    assert "is not valid: " in checked.message
    run(episode, SAMPLE)
    assert act(episode, "check").observation.valid


def test_predictions_are_scored_on_own_truth(episode: Episode) -> None:
    run(episode, "head -5 $SAMPLE_SUBMISSION > code/p.csv; awk -F, 'NR>1{$2=NR%2}1' OFS=, code/p.csv > code/t.csv")
    scored = act(episode, "score", predictions="code/p.csv", truth="code/t.csv").observation
    assert (scored.valid, scored.score) == (True, 0.5)
    assert scored.left.scores == 19
    wrong = act(episode, "score", predictions="code/p.csv", truth="instructions.txt").observation
    assert (wrong.valid, wrong.score) == (False, None)


def test_public_scores_are_told_when_they_improve(episode: Episode, store: Store, tmp_path: Path) -> None:
    assert "No such file" in act(episode, "public_score").observation.message
    run(episode, "echo a,b > submission/submission.csv")
    wrong = act(episode, "public_score").observation
    assert (wrong.valid, wrong.best, wrong.left.public_scores) == (False, None, 5)
    run(episode, SAMPLE)
    first = act(episode, "public_score").observation
    assert (first.valid, first.best, first.improved, first.left.public_scores) == (True, 0.5, True, 4)
    assert first.score is None
    assert act(episode, "public_score").observation.improved is False

    act(episode, "write", path="code/model.py", content=MODEL)
    run(episode, "$MLEBENCH_PYTHON code/model.py")
    better = act(episode, "public_score").observation
    content = str(act(episode, "read", path="submission/submission.csv").observation.content)
    (submission := tmp_path / "submission.csv").write_text(content)
    with GradingPool(registry.get(COMPETITION), store.local("prepared", "v1", COMPETITION, "k")) as grader:
        _, parts = grader.parts(submission)
    assert parts is not None
    assert parts.public is not None
    assert better.improved
    assert better.best == pytest.approx(parts.public.score, abs=parts.public.standard_error)

    run(episode, SAMPLE)
    worse = act(episode, "public_score").observation
    assert (worse.improved, worse.best) == (False, better.best)
    act(episode, "public_score")
    over = act(episode, "public_score").observation
    assert over.message == "Not done: all 5 public scores of this episode are used up."
    assert (over.best, over.left.public_scores) == (None, 0)


def test_an_episode_may_have_no_public_scores(make_episodes: Callable[..., Episodes]) -> None:
    episode = make_episodes(EpisodeLimits(public_scores=0)).begin().episode
    run(episode, SAMPLE)
    assert act(episode, "public_score").observation.message == "Not done: there are no public scores."


def test_a_test_set_that_cannot_be_divided_has_no_public_scores(
    make_episodes: Callable[..., Episodes], monkeypatch: pytest.MonkeyPatch
) -> None:
    episode = make_episodes().begin().episode
    monkeypatch.setattr(episode.dataset, "_sample_scores", lambda: (None, None, 0.5))
    run(episode, SAMPLE)
    told = act(episode, "public_score").observation
    assert "cannot be divided into a public and a private part" in told.message
    assert told.left.public_scores == 5


def test_without_a_private_score_there_is_no_reward(
    make_episodes: Callable[..., Episodes], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test set can be divided: a score on all rows would reward what a run with feedback calls invalid."""
    dataset = make_episodes().begin().episode.dataset
    gold = store.local("prepared", "v1", COMPETITION, "k") / registry.get(COMPETITION).facts.files.gold_submission
    assert dataset.judge(gold).reward > 0.5
    parts_of = dataset._grader.parts

    def parts(*arguments: Any, **options: Any) -> Any:
        grade, found = parts_of(*arguments, **options)
        return grade, replace(found, private=None, message="only one class")

    monkeypatch.setattr(dataset._grader, "parts", parts)
    judgement = dataset.judge(gold)
    assert (judgement.reward, judgement.info["valid"], judgement.info["score"]) == (0.0, False, None)
    assert judgement.info["message"] == "there is no score on the private part of the test set: only one class"


def test_the_reward_is_that_of_the_private_part(episode: Episode, store: Store, tmp_path: Path) -> None:
    act(episode, "write", path="code/model.py", content=MODEL)
    assert act(episode, "run", command="$MLEBENCH_PYTHON code/model.py").observation.stderr == ""
    content = str(act(episode, "read", path="submission/submission.csv").observation.content)
    step = act(episode, "submit")

    facts = registry.get(COMPETITION).facts
    (submission := tmp_path / "submission.csv").write_text(content)
    with GradingPool(registry.get(COMPETITION), store.local("prepared", "v1", COMPETITION, "k")) as grader:
        _, parts = grader.parts(submission)
    assert parts is not None
    assert parts.private is not None
    assert step.reward == dense_reward(parts.private.score, Thresholds.of(facts), facts.leaderboard.percentiles)
    assert step.reward > 0.1
    info = step.observation.info
    assert (info["score"], info["part"], info["valid"]) == (parts.private.score, "private", True)
    assert info["failure"] is None
    assert info["improvement"] > 0.3
    assert (step.terminated, step.truncated) == (True, False)


def test_an_episode_without_a_submission_has_no_reward(episode: Episode) -> None:
    step = act(episode, "submit")
    assert (step.reward, step.observation.valid) == (0.0, False)
    with pytest.raises(UserError, match="has ended: reset"):
        act(episode, "run", command="true")


def test_an_action_that_cannot_be_carried_out_says_why(episode: Episode) -> None:
    assert act(episode, "run").observation.message == "An action 'run' needs command."
    assert act(episode, "write", path="a").observation.message == "An action 'write' needs content."
    assert act(episode, "write", path="data/train.csv", content="").observation.message.endswith("it is given.")
    assert act(episode, "write", path="instructions.txt", content="").observation.message.endswith("it is given.")
    assert act(episode, "read", path="code").observation.message == "Not done: code is a folder."


def test_the_submission_that_exists_at_a_limit_counts(make_episodes: Callable[..., Episodes]) -> None:
    episode = make_episodes(EpisodeLimits(steps=2)).begin().episode
    run(episode, SAMPLE)
    step = act(episode, "run", command="echo last")
    assert (step.terminated, step.truncated, step.observation.stdout) == (False, True, "last\n")
    assert step.observation.info["valid"]
    assert "the limit of 2 steps was reached" in step.observation.message

    episode = make_episodes(EpisodeLimits(seconds=1.0)).begin().episode
    step = act(episode, "run", command="sleep 30", seconds=20)
    assert step.truncated
    assert "the limit of 1 seconds was reached" in step.observation.message


def test_an_episode_whose_sandbox_has_ended_ends(episode: Episode) -> None:
    run(episode, SAMPLE)
    step = act(episode, "run", command=END)
    deadline = time.monotonic() + 30
    while not step.done:
        assert time.monotonic() < deadline
        step = act(episode, "run", command="sleep 1")
    assert step.truncated
    assert step.observation.message.startswith("The episode has ended: the sandbox has ended: ")


def test_a_reward_that_says_nothing_of_the_agent_says_so(make_episodes: Callable[..., Episodes]) -> None:
    """Trainers leave such episodes out, instead of learning from a zero that nobody has earned."""
    episode = make_episodes(EpisodeLimits(steps=1)).begin().episode
    grade = replace(episode.dataset.check(Path("none.csv")), outcome="failed", message="no memory")
    assert episode.dataset._judgement(grade, None, None, "private").info["failure"] == "no memory"
    episode._sandbox.lost = True
    assert act(episode, "run", command="true").observation.info["failure"] == "the limit of 1 steps was reached"


def test_a_sandbox_that_was_started_ahead_is_new(make_episodes: Callable[..., Episodes]) -> None:
    episodes = make_episodes(warm=1)
    seen = set()
    for _ in range(3):
        running = episodes.begin()
        assert run(running.episode, "ls code tmp submission | wc -w; echo x > code/left") == "3\n"
        seen.add(run(running.episode, "pwd"))
        running.close()
    assert len(seen) == 3


def test_there_are_at_most_as_many_episodes_as_slots(
    make_episodes: Callable[..., Episodes], monkeypatch: pytest.MonkeyPatch
) -> None:
    from common.settings import get_settings

    monkeypatch.setenv("MLEBENCH_AGENTS", "1")
    get_settings.cache_clear()
    try:
        episodes = make_episodes(patience=0.0)
        running = episodes.begin()
        with pytest.raises(NoSlot, match=r"all 1 slots of this host \(MLEBENCH_AGENTS\) are taken"):
            episodes.begin()
        running.close()
        episodes.begin().close()
    finally:
        get_settings.cache_clear()


def test_graders_end_where_there_are_more_datasets(
    make_episodes: Callable[..., Episodes], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the dataset that was used longest ago, which begin again when it is needed."""
    put_dataset(store, "diabetes")
    monkeypatch.setattr("training.episodes._GRADED", 1)
    monkeypatch.setattr(Episodes, "slots", 1)
    episodes = make_episodes(competitions=(COMPETITION, "diabetes"))

    def reward(name: str) -> float | None:
        running = episodes.begin(name)
        run(running, SAMPLE)
        step = act(running, "submit")
        assert step.observation.info is not None
        assert step.observation.info["valid"]
        return step.reward

    def graded() -> list[str]:
        return [name for name, dataset in episodes._datasets.items() if dataset._grader._process is not None]

    first = reward(COMPETITION)
    assert graded() == [COMPETITION]
    reward("diabetes")
    until(lambda: graded() == ["diabetes"], what="the end of the graders of the other dataset")
    assert reward(COMPETITION) == first


def test_nothing_is_left_of_an_episode(make_episodes: Callable[..., Episodes]) -> None:
    from common.settings import get_settings

    episodes = make_episodes()
    running = episodes.begin()
    run(running.episode, "nohup sleep 1000 >/dev/null 2>&1 & mkdir -p code/a; chmod 0 code/a")
    assert len(folders(get_settings().scratch)) == 1
    running.close()
    assert folders(get_settings().scratch) == []
    episodes.close()
    assert list(get_settings().scratch.glob("episodes/process-*")) == []


def test_episodes_are_recorded(make_episodes: Callable[..., Episodes], store: Store) -> None:
    episodes = make_episodes(group="trained")
    running = episodes.begin(seed=3)
    running.begun()
    run(running, SAMPLE)
    act(running, "submit")
    episodes.begin(id="second").close()
    rows = read_table(store, "episodes", ["trained"]).set_index("episode_id")
    first, second = rows.loc[running.id], rows.loc["second"]
    assert (first.end, first.steps, first.valid, first.division, first.seed) == ("submitted", 2, True, "train", 3)
    assert first.test_scores
    assert second.end == "abandoned"
    assert second.isna()["reward"]
    trajectory = json.loads(store.local("episodes", "trained", f"{running.id}.json").read_text())
    assert trajectory["schema_version"].startswith("ATIF-")
    called = [call["function_name"] for step in trajectory["steps"] for call in step.get("tool_calls", ())]
    assert called == ["run", "submit"]
    totals = trajectory["final_metrics"]["extra"]
    assert (totals["reward"], totals["end"]) == (first.reward, "submitted")


@pytest.mark.service("readers")
def test_trajectories_are_read_by_others(make_episodes: Callable[..., Episodes], store: Store) -> None:
    running = make_episodes(group="read").begin()
    running.begun()
    run(running, SAMPLE)
    act(running, "write", path="code/a", content="\ud83d")
    act(running, "submit")
    assert readers.read(READ, store.local("episodes", "read", f"{running.id}.json")) == ["system", *["agent"] * 3]


def test_half_a_character_is_no_failure(episode: Episode) -> None:
    act(episode, "write", path="code/\ud83d", content="\ud83d \udcff\udfff")
    assert run(episode, "cat code/\ud83d; echo \ud83d") == "\ufffd \ufffd\ufffd\ufffd\n"
    assert "\ufffd" in act(episode, "read", path="none/\ud83d").observation.message


def test_a_store_that_fails_costs_no_reward(
    make_episodes: Callable[..., Episodes], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    episodes = make_episodes(group="failing")
    running = episodes.begin(id="first")
    run(running, SAMPLE)
    with monkeypatch.context() as patched:
        patched.setattr("training.journal.write_table", Mock(side_effect=StoreError("the bucket is full")))
        assert act(running, "submit").observation.valid
    episodes.begin(id="second").close()
    assert sorted(read_table(store, "episodes", ["failing"]).episode_id) == ["first", "second"]


def test_test_scores_mark_the_store(make_episodes: Callable[..., Episodes], store: Store) -> None:
    store.remove(store.url(*MARK.split("/")))
    episodes = make_episodes()
    assert marked(store) is None
    episodes.begin().close()
    assert f"first {COMPETITION} on host" in str(marked(store))


@pytest.mark.parametrize(
    ("competition", "allowed", "message"),
    [
        (COMPETITION, {}, "scores on the benchmark's whole test set: train on a small variant"),
        ("spaceship-titanic", {"allow_test_scores": True}, "not prepared"),
        ("leaf-classification", {"allow_test_scores": True}, "one of the 22 Lite competitions"),
    ],
)
def test_what_must_not_be_trained_on_is_refused(
    store: Store, competition: str, allowed: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        Episodes(store, TrainingOptions((competition,), isolation=PROCESS, **allowed))
