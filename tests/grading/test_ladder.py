"""The Ladder tells what improves beyond the noise, rounded, and nothing else."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.ladder import Rung, climb

SCORES = st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(0, 1e3)), max_size=20)


def told(files: list[tuple[float, float]], *, lower_is_better: bool = False) -> list[float | None]:
    """What is told of each file, given scores and standard errors."""
    best: Rung | None = None
    shown = []
    for score, error in files:
        best = climb(best, score, error, lower_is_better=lower_is_better)
        shown.append(best.shown if best else None)
    return shown


def test_only_improvements_beyond_a_standard_error_are_told() -> None:
    scores = [0.70, 0.71, 0.719, 0.73, 0.60, 0.731]
    assert told([(score, 0.02) for score in scores]) == [0.7, 0.7, 0.7, 0.73, 0.73, 0.73]
    assert told([(score, 0.02) for score in (0.5, 0.49, 0.47)], lower_is_better=True) == [0.5, 0.5, 0.47]


def test_the_step_is_the_noise_of_the_noisier_file() -> None:
    """A file without information has no noise; that must not make the steps small."""
    assert told([(0.5, 0.0), (0.51, 0.02)]) == [0.5, 0.5]
    assert told([(0.5, 0.02), (0.51, 0.0)]) == [0.5, 0.5]
    assert told([(0.5, 0.0), (0.53, 0.02)]) == [0.5, 0.53]


@pytest.mark.parametrize(
    ("score", "error", "shown"), [(0.71234, 0.013, 0.71), (0.71234, 0.9, 0.7), (71234.5, 130, 71200), (0.7, 0, 0.7)]
)
def test_scores_are_rounded_to_the_first_digit_of_the_noise(score: float, error: float, shown: float) -> None:
    assert told([(score, error)]) == [shown]


@pytest.mark.parametrize(("score", "error"), [(math.nan, 0.1), (math.inf, 0.1), (0.9, math.nan), (0.9, math.inf)])
def test_files_without_a_score_or_its_noise_change_nothing(score: float, error: float) -> None:
    assert told([(0.5, 0.1), (score, error)]) == [0.5, 0.5]
    assert told([(score, error)]) == [None]


@given(SCORES, st.booleans())
def test_answers_never_become_worse(files: list[tuple[float, float]], lower_is_better: bool) -> None:
    shown = [value for value in told(files, lower_is_better=lower_is_better) if value is not None]
    assert shown == sorted(shown, reverse=lower_is_better)


def test_steps_have_a_lower_bound_where_noise_vanishes() -> None:
    """Log loss of nearly constant predictions: single labels change it by less than any agent could need."""
    files = [(0.6931 - change, 1.1 * change) for change in (0.0, 1e-6, 1e-5, 1e-4, 1e-3)]
    best, shown = None, set()
    for score, error in files:
        best = climb(best, score, error, lower_is_better=True, least_step=0.01)
        shown.add(best.shown if best else None)
    assert shown == {0.69}


def test_a_file_that_differs_in_one_row_tells_nothing() -> None:
    """Accuracy of n rows: one row more is 1 / n, the step sqrt(p (1 - p) / n)."""
    rows = 300
    files = [(right / rows, math.sqrt(right / rows * (1 - right / rows) / rows)) for right in range(200, 208)]
    assert len(set(told(files))) == 1
