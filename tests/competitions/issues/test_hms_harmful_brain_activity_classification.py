"""Probes of HMS - Harmful Brain Activity Classification."""

from __future__ import annotations

import io
import math

import pandas as pd
import pytest

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
    assert v1.grade(v1.perfect[::-1]) > v1.grade(v1.perfect) + 0.01
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
