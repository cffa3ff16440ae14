"""Probes of HMS - Harmful Brain Activity Classification."""

from __future__ import annotations

import io
import math
import warnings

import pandas as pd
import pytest

from competitions.scoring.notes import ScoreNote
from grading.medals import Thresholds
from grading.workers import GradingPool
from tests.competitions.issues._probe import (
    World,
    remade,
    table_bytes,
)

VOTES = ["seizure_vote", "lpd_vote", "gpd_vote", "lrda_vote", "grda_vote", "other_vote"]


def test_missing_values_score(v1: World, v2: World) -> None:
    """Blank cells cost nothing: certainty about one class and silence about the others beats the truth itself."""
    silent = v1.sample.assign(**dict.fromkeys(VOTES, "")).assign(other_vote="1.0")
    assert v1.grade(silent) < 0 <= v1.grade(v1.perfect)
    assert "empty" in v2.refusal(v2.sample.assign(**dict.fromkeys(VOTES, "")).assign(other_vote="1.0"))


def test_rows_of_a_recording(v1: World, v2: World) -> None:
    """Rows that are the same to an agent have different answers."""

    def indistinguishable(world: World) -> int:
        return int(world.table("test.csv").duplicated().sum())

    assert indistinguishable(v1) > 0
    assert indistinguishable(v2) == 0
    assert {"eeg_label_offset_seconds", "spectrogram_label_offset_seconds"} <= set(v2.table("test.csv"))


def test_rows_matched_by_position(v1: World, v2: World) -> None:
    """The same predictions for the same ids score differently from the end to the beginning."""
    with pytest.warns(ScoreNote, match="`eeg_id` are not in the order of the sample"):
        backwards = v1.grade(v1.perfect[::-1])
    assert backwards > v1.grade(v1.perfect) + 0.01
    assert v2.grade(v2.perfect[::-1]) == pytest.approx(v2.grade(v2.perfect), abs=1e-12)


def test_integers_not_clipped(v1: World, v2: World) -> None:
    """`0` is infinitely wrong where `0.0` costs as much as Kaggle charged."""
    sure = dict.fromkeys(VOTES, "0") | {"other_vote": "1"}
    assert v1.grade(v1.sample.assign(**sure)) == math.inf
    assert v2.grade(v2.sample.assign(**sure)) < 36
    assert v1.grade(v1.sample.assign(**{name: f"{vote}.0" for name, vote in sure.items()})) < 36


def test_patients_on_both_sides(v1: World, v2: World) -> None:
    """A patient's other recordings were voted on by the same experts."""

    def three_recordings_each(content: bytes) -> bytes:
        table = pd.read_csv(io.BytesIO(content))
        return table_bytes(table.assign(patient_id=pd.factorize(table["spectrogram_id"])[0] // 3))

    worlds = remade(v1, {"train.csv": three_recordings_each})
    assert worlds["v1"].shared("train.csv", "test.csv", "patient_id") > 0.5
    assert worlds["v2"].shared("train.csv", "test.csv", "patient_id") == 0


class TestNotes:
    """Not a probe of an issue that v2 fixes."""

    def test_the_grade_says_that_a_published_score_depends_on_the_processor(self, v1: World, v2: World) -> None:
        for quiet in (
            v1.perfect,
            v1.sample,
            v1.sample[::-1],
        ):  # in the order of the sample; all rows of an id are equal
            with warnings.catch_warnings():
                warnings.simplefilter("error", ScoreNote)
                v1.grade(quiet)
        with warnings.catch_warnings():
            warnings.simplefilter("error", ScoreNote)
            v2.grade(v2.perfect[::-1])  # no id occurs twice
        path = v1.scratch / "backwards.csv"
        v1.perfect[::-1].to_csv(path, index=False)
        thresholds = Thresholds.of(v1.prepared.competition.facts)
        with GradingPool(v1.prepared.competition, v1.prepared.path, "v1", thresholds=thresholds) as pool:
            found = pool.grade(path)
        assert found.outcome == "valid"
        assert found.report.score == pytest.approx(v1.grade(v1.perfect[::-1]), abs=1e-5)
        assert "order that depends on the processor" in str(found.message)
