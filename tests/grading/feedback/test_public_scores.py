"""Public scores of a run: what attackers try to learn from them, and what survives a restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from grading.feedback.public_scores import FILES, Answer, PublicScores
from grading.workers import GradingPool
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

    def restart(self) -> None:
        self.scores = PublicScores(self.pool, self.folder, 0.3, "id")

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
    assert run.answer(run.predictions(1, 0.1)) == Answer("valid", None, better.best, improved=False)


def test_a_restart_continues(run: Run) -> None:
    best = run.answer(run.predictions(1, 0.5)).best
    run.restart()
    assert run.answer(run.predictions(2)) == Answer("valid", None, best, improved=False)
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
