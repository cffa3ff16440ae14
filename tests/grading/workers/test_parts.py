"""Scores on the public and the private part: of units that belong together, the same for everybody."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from competitions import registry
from competitions.facts import Resampling
from grading.workers import GradingPool
from grading.workers.parts import Parts, public_units, score_parts
from tests.prepared import PreparedCompetitions

ANSWERS = pd.DataFrame({"id": range(100), "value": np.arange(100) % 7.0, "patient": np.arange(100) // 5})
RIGHT = ANSWERS[["id", "value"]]
NAMES = [str(name) for name in range(100)]


def mean_error(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    assert submission["id"].tolist() == answers["id"].tolist()
    return float((submission["value"] - answers["value"]).abs().mean())


def parts_of(
    submission: Any, answers: Any = ANSWERS, how: Resampling | None = None, score: Any = mean_error, **options: Any
) -> Parts:
    facts: Any = SimpleNamespace(id="x", resampling=how)
    whole = mean_error(submission, answers)
    return score_parts(score, (submission, answers), facts, whole=whole, **options)


class TestTheDraw:
    def test_it_has_the_share_and_depends_on_names_and_competition_only(self) -> None:
        public = public_units(NAMES, "x")
        assert public.sum() == 30
        backwards = public_units(NAMES[::-1], "x")
        assert (backwards[::-1] == public).all()
        assert (public_units(NAMES, "y") != public).any()

    def test_it_is_that_of_every_version(self) -> None:
        """Published scores depend on it: it must never change."""
        assert np.flatnonzero(public_units(NAMES, "x", 0.05)).tolist() == [13, 27, 59, 66, 78]

    def test_a_larger_share_contains_a_smaller_one(self) -> None:
        small, large = (public_units(NAMES, "x", share) for share in (0.2, 0.5))
        assert large[small].all()

    @pytest.mark.parametrize(("units", "share", "public"), [(2, 0.001, 1), (2, 0.999, 1), (10, 0.3, 3)])
    def test_both_parts_have_a_unit(self, units: int, share: float, public: int) -> None:
        assert public_units(NAMES[:units], "x", share).sum() == public


class TestScores:
    def test_the_parts_make_up_the_whole(self) -> None:
        noisy = RIGHT.assign(value=RIGHT["value"] + np.arange(100) % 3)
        found = parts_of(noisy)
        assert found.public is not None
        assert found.private is not None
        assert found.id == "id"
        assert 0.3 * found.public.score + 0.7 * found.private.score == pytest.approx(mean_error(noisy, ANSWERS))
        assert found.private.standard_error == pytest.approx(
            noisy["value"].sub(RIGHT["value"]).std() / 70**0.5, rel=0.3
        )

    def test_units_stay_together(self) -> None:
        seen: list[pd.DataFrame] = []

        def score(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
            seen.append(answers)
            return mean_error(submission, answers)

        found = parts_of(RIGHT, how=Resampling(column="patient"), score=score)
        assert found.private is not None
        assert {len(part) for part in seen} >= {30, 70, 100}
        assert all(set(part["patient"].value_counts()) == {5} for part in seen)

    def test_errors_can_be_left_out(self) -> None:
        found = parts_of(RIGHT, seconds=0)
        assert found.private is not None
        assert np.isnan(found.private.standard_error)

    def test_an_agent_cannot_choose_the_column_of_ids(self) -> None:
        """By default it is the shared column with the most values, which a submission with another column changes."""
        answers = pd.DataFrame({"id": np.arange(100) // 2, "place": range(100), "value": 1.0})
        ordinary, odd = answers[["id", "value"]], answers[["id", "place", "value"]]
        assert parts_of(odd, answers).id == "place"
        assert parts_of(odd, answers, id="id") == parts_of(ordinary, answers)

    @pytest.mark.parametrize("options", [{}, {"id": "id"}])
    def test_ids_are_numbers_by_value(self, options: dict[str, Any]) -> None:
        """pandas writes 1.0 for 1 after a merge that missed a row. Graders accept that."""
        merged = RIGHT.assign(id=RIGHT["id"].astype(float), value=RIGHT["value"] + 1)
        found = parts_of(merged, **options)
        assert found.private is not None
        assert found == parts_of(merged.assign(id=RIGHT["id"]), **options)

    def test_ids_that_match_in_another_way_are_never_cut_wrongly(self) -> None:
        def lenient(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
            return mean_error(submission.assign(id=submission["id"].astype(int)), answers)

        odd = RIGHT.assign(id="0" + RIGHT["id"].astype(str))
        facts: Any = SimpleNamespace(id="x", resampling=None)
        found = score_parts(lenient, (odd, ANSWERS), facts, whole=0.0, id="id")
        assert found == Parts(message="100 of 100 ids of the answers are not in column `id` of the submission")

    def test_rows_may_be_left_out_where_the_grader_allows_it(self) -> None:
        def lenient(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
            return mean_error(submission, answers[answers["id"].isin(submission["id"])].reset_index(drop=True))

        facts: Any = SimpleNamespace(id="x", resampling=None)
        found = score_parts(lenient, (RIGHT.iloc[1:], ANSWERS), facts, whole=0.0, id="id")
        assert found.public is not None
        assert found.private is not None

    @pytest.mark.parametrize(
        ("submission", "answers", "how", "says"),
        [
            (RIGHT.head(15), ANSWERS.head(15), None, "only 4 units"),
            (RIGHT, ANSWERS, Resampling(unknown="nobody knows"), "nobody knows"),
            (RIGHT, ANSWERS, Resampling(column="patient", id="name"), "no column `name`"),
        ],
    )
    def test_what_cannot_be_divided_says_why(self, submission: Any, answers: Any, how: Any, says: str) -> None:
        found = parts_of(submission, answers, how)
        assert (found.public, found.private) == (None, None)
        assert says in str(found.message)

    @pytest.mark.parametrize(("rows", "name"), [(30, "public"), (70, "private")])
    def test_a_part_without_a_score_is_named_and_the_other_one_has_one(self, rows: int, name: str) -> None:
        def picky(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
            if len(answers) == rows:
                raise ValueError("only one class")
            return 0.0

        found = parts_of(RIGHT, score=picky)
        assert found.message == f"the {name} part cannot be scored: ValueError: only one class"
        assert (found.public is None, found.private is None) == (name == "public", name == "private")


@pytest.mark.parametrize("competition_id", registry.list())
def test_every_competition_has_two_parts_or_says_why(competition_id: str, prepared: PreparedCompetitions) -> None:
    """A miniature may have too few patients, or no positive in a part; most real test sets do not."""
    subject = prepared[competition_id]
    competition = subject.competition
    table = competition.read_submission(subject.path / competition.facts.files.sample_submission)
    score, how = competition.score_table, competition.facts.resampling
    whole = score(table.copy(), competition.answers(subject.path))
    found = score_parts(score, (table, subject.answers), competition.facts, whole=whole, seconds=1)
    if how is not None and how.unknown:
        assert found.message == how.unknown
    elif found.message and "sample-scores-nan" not in competition.facts.oddities:
        assert "a part has only" in found.message or "part cannot be scored" in found.message, found.message
    assert found.message or (found.public and found.private)


class TestInWorkers:
    def test_as_in_this_process(self, prepared: PreparedCompetitions) -> None:
        subject = prepared["diabetes"]
        path = subject.path / subject.competition.facts.files.sample_submission
        with GradingPool(subject.competition, subject.path) as grader:
            grade, found = grader.parts(path)
            assert grade.report.score == grader.grade(path).report.score
        table = subject.competition.read_submission(path)
        score = subject.competition.score_table
        whole = score(table.copy(), subject.answers)
        assert found == score_parts(score, (table, subject.answers), subject.competition.facts, whole=whole)

    @pytest.mark.parametrize("share", [0.0, 1.0, -0.1, float("nan")])
    def test_a_share_that_is_none_is_refused(self, share: float, prepared: PreparedCompetitions) -> None:
        subject = prepared["diabetes"]
        with (
            GradingPool(subject.competition, subject.path) as grader,
            pytest.raises(ValueError, match="between 0 and 1"),
        ):
            grader.parts(subject.path, share)

    def test_with_validation_the_private_part_does_not_matter(
        self, prepared: PreparedCompetitions, tmp_path: Path
    ) -> None:
        """Rows of the private part are changed: the answer stays. Of the public part: it changes."""
        subject = prepared["diabetes"]
        path = subject.path / subject.competition.facts.files.sample_submission
        table = pd.read_csv(path)
        with GradingPool(subject.competition, subject.path, validating=True) as grader:
            grade, found = grader.parts(path, id="id")
            assert grade.outcome == "valid"
            assert found is not None
            assert found.public is not None
            assert found.private is None
            public = public_units(table["id"].astype(str).tolist(), "diabetes")
            changed = []
            for rows in (~public, public):
                other = table.copy()
                other.loc[rows, other.columns[-1]] += 100
                other.to_csv(tmp_path / "other.csv", index=False)
                changed.append(grader.parts(tmp_path / "other.csv", id="id")[1] != found)
            assert changed == [False, True]
            (tmp_path / "other.csv").write_text("id\n1\n")
            grade, found = grader.parts(tmp_path / "other.csv", id="id")
            assert (grade.outcome, found) == ("invalid", None)
