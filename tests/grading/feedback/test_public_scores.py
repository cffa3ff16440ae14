"""Public scores of a run: what attackers try to learn from them, and what survives a restart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from grading.feedback import public_scores
from grading.feedback.public_scores import (
    FILES,
    JOURNAL,
    Answer,
    PublicPart,
    PublicScores,
    Writing,
    begin_anew,
    kept,
    take_over,
)
from grading.report import Outcome
from grading.workers import GradingPool
from grading.workers.endings import TOO_EXPENSIVE
from grading.workers.parts import public_units
from tests.prepared import PreparedCompetitions

NAME = "tabular-playground-series-may-2022"


class Run:
    """A run with public scores, whose process can be restarted."""

    def __init__(self, prepared: PreparedCompetitions, folder: Path) -> None:
        subject = prepared[NAME]
        self.sample = pd.read_csv(subject.path / subject.competition.facts.files.sample_submission)
        self.gold = pd.read_csv(subject.path / subject.competition.facts.files.gold_submission)
        self.target = self.sample.columns[-1]
        self.folder, self.file = folder / "records", folder / "file.csv"
        self.folder.mkdir()
        self.pool = GradingPool(subject.competition, subject.path, validating=True)
        self.public = public_units(self.sample["id"].astype(str).tolist(), NAME)
        self.restart()

    def restart(self, calls_per_day: int = 100) -> None:
        self.scores = PublicScores(self.pool, self.folder, PublicPart(0.3, "id", calls_per_day))

    def answer(self, table: pd.DataFrame) -> Answer:
        table.to_csv(self.file, index=False)
        return self.scores.answer(self.file)

    def predictions(self, seed: int, right: float = 0.0) -> pd.DataFrame:
        """Random predictions, mixed with the right answers."""
        noise = np.random.default_rng(seed).random(len(self.sample))
        truth = self.gold.set_index("id").loc[self.sample["id"], self.target].to_numpy()
        return self.sample.assign(**{self.target: (1 - right) * noise + right * truth})


@pytest.fixture
def run(prepared: PreparedCompetitions, tmp_path: Path) -> Iterator[Run]:
    made = Run(prepared, tmp_path)
    with made.pool:
        yield made


def test_improvements_are_told_and_nothing_else(run: Run) -> None:
    first, better = run.answer(run.predictions(1, 0.1)), run.answer(run.predictions(1, 0.5))
    assert (first.improved, better.improved) == (True, True)
    assert (better.best or 0) > (first.best or 0)
    assert run.answer(run.predictions(1, 0.1)) == Answer("valid", None, 3, better.best, improved=False, calls_left=97)


def test_a_restart_continues(run: Run) -> None:
    best = run.answer(run.predictions(1, 0.5)).best
    run.restart()
    assert run.answer(run.predictions(2)) == Answer("valid", None, 2, best, improved=False, calls_left=98)
    assert sorted(path.name for path in (run.folder / FILES).iterdir()) == ["1.csv", "2.csv"]


def test_rows_of_the_private_part_change_nothing(run: Run) -> None:
    """Whatever is in them: the right answers, their opposite, or ties."""
    table = run.predictions(1, 0.3)
    first = run.answer(table)
    right = run.predictions(1, 1.0)[run.target]
    for values in (right, 1 - right, right * 0):
        other = table.copy()
        other.loc[~run.public, run.target] = values[~run.public]
        assert run.answer(other).best == first.best
        run.restart()
        assert run.answer(table).best == first.best


def test_files_that_differ_in_one_row_tell_nothing(run: Run) -> None:
    table = run.predictions(1, 0.3)
    answers = [run.answer(table)]
    for row in range(8):
        table.loc[row, run.target] = 1.0
        answers.append(run.answer(table))
    assert len({answer.best for answer in answers}) == 1


def test_another_column_does_not_change_the_division(run: Run) -> None:
    table = run.predictions(1, 0.3)
    best = run.answer(table).best
    run.restart()
    assert run.answer(table.assign(row=range(len(table)))).best == best


@pytest.mark.parametrize("value", ["nan", "inf", "x", ""])
def test_cells_without_a_number_are_answered_without_a_score(run: Run, value: str) -> None:
    table = run.predictions(1).astype({run.target: str})
    table.loc[3, run.target] = value
    answer = run.answer(table)
    assert answer.best is None
    assert answer.outcome != "failed"


def test_a_file_without_variation_tells_nothing_of_the_labels(run: Run) -> None:
    assert run.answer(run.sample.assign(**{run.target: 0.5})).best == 0.5


class Time:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(public_scores, "_now", made)
    return made


def test_calls_of_a_day(run: Run, time: Time) -> None:
    """They are counted over the last 24 hours, also by a process that was restarted or whose clock is set back."""
    run.restart(2)
    table = run.predictions(1)
    assert [run.answer(table).calls_left for _ in range(2)] == [1, 0]
    run.restart(2)
    refused = run.answer(table)
    assert (refused.outcome, refused.submission, refused.calls_left) == ("refused", None, 0)
    assert refused.message == "all 2 public scores of the last 24 hours are used up; try again in 24 hours"
    time.now -= timedelta(days=3)
    assert run.answer(table).outcome == "refused"
    time.now += timedelta(days=4)
    assert (run.answer(table).submission, len(list((run.folder / FILES).iterdir()))) == (3, 3)


def test_invalid_files_are_not_counted_and_not_kept(run: Run) -> None:
    run.restart(1)
    for table in (run.predictions(1)[:-1], run.predictions(1)[["id"]]):
        answer = run.answer(table)
        assert (answer.outcome, answer.submission, answer.calls_left) == ("invalid", None, 1)
    assert kept(run.folder) == {}
    assert not list((run.folder / FILES).iterdir())


def test_a_valid_file_without_a_score_is_counted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether there is a score may depend on labels: who could ask as often as they like would learn them."""
    monkeypatch.setattr(run.pool, "parts", lambda *_: (run.pool.grade(run.file), None))
    answer = run.answer(run.predictions(1))
    assert answer == Answer("valid", "it has no public score", 1, None, improved=False, calls_left=99)
    run.restart()
    assert run.answer(run.predictions(1)).submission == 2


@pytest.mark.parametrize(("outcome", "message"), [("failed", "grading failed: KeyError"), ("invalid", TOO_EXPENSIVE)])
def test_a_file_on_which_the_grader_fails_is_counted(
    run: Run, monkeypatch: pytest.MonkeyPatch, outcome: Outcome, message: str
) -> None:
    grade = replace(run.pool.grade(None), outcome=outcome, message=message)
    monkeypatch.setattr(run.pool, "parts", lambda *_: (grade, None))
    answer = run.answer(run.predictions(1))
    assert answer == Answer("valid", "it has no public score", 1, None, improved=False, calls_left=99)
    run.restart()
    assert run.answer(run.predictions(1)).submission == 2


def test_a_full_journal_refuses(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that is left out would not be counted after a restart."""
    monkeypatch.setattr(public_scores, "_MAX_BYTES", 100)
    run.restart()
    assert run.answer(run.predictions(1)).message == "the journal of public scores is full"


def test_files_that_fill_the_disk(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_scores, "KEPT_BYTES", 100)
    assert run.answer(run.predictions(1)).outcome == "valid"
    assert run.answer(run.predictions(1)).message == "the files with public scores have more than 100 bytes"


def test_a_link_in_place_of_the_file(run: Run, tmp_path: Path) -> None:
    """As a process of services that an agent took over could leave it."""
    link = tmp_path / "link.csv"
    link.symlink_to(run.pool.prepared / run.pool.competition.facts.files.gold_submission)
    with pytest.raises(OSError, match="symbolic link"):
        run.scores.answer(link)
    assert not list((run.folder / FILES).iterdir())


def test_a_file_that_is_scored_when_the_run_ends_leaves_no_trace(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its line would be written after the journal was stored, or after the run was begun anew."""
    writing, parts = Writing(), run.pool.parts
    run.scores = PublicScores(run.pool, run.folder, PublicPart(0.3, "id", 5), writing)

    def ends(*arguments: Any) -> Any:
        found = parts(*arguments)
        writing.end()
        return found

    monkeypatch.setattr(run.pool, "parts", ends)
    assert [run.answer(run.predictions(1)).outcome for _ in range(2)] == ["failed", "failed"]
    assert (kept(run.folder), list((run.folder / FILES).iterdir())) == ({}, [])


def test_a_run_that_is_started_from_scratch_begins_anew(run: Run) -> None:
    run.answer(run.predictions(1, 0.9))
    begin_anew(run.folder)
    run.restart(1)
    answer = run.answer(run.predictions(1))
    assert (answer.submission, answer.improved, answer.calls_left) == (1, True, 0)


def test_a_run_that_continues_elsewhere_goes_on(run: Run, tmp_path: Path) -> None:
    first, second = (run.answer(run.predictions(seed, 0.1 + 0.4 * seed)) for seed in range(2))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    take_over(elsewhere, run.folder)
    there = PublicScores(run.pool, elsewhere, PublicPart(0.3, "id", 3))
    answer = there.answer(run.file)
    assert answer == Answer("valid", None, 3, second.best, improved=False, calls_left=0)
    assert second.best != first.best
    assert sorted(kept(elsewhere)) == [JOURNAL, *(f"{FILES}/{number}.csv" for number in (1, 2, 3))]
    run.answer(run.predictions(7))  # here, before this process notices that it has lost the run
    take_over(run.folder, elsewhere)
    assert {name: path.read_bytes() for name, path in kept(run.folder).items() if name != JOURNAL} == {
        name: path.read_bytes() for name, path in kept(elsewhere).items() if name != JOURNAL
    }
    run.restart(3)
    assert run.answer(run.predictions(8)).outcome == "refused"
