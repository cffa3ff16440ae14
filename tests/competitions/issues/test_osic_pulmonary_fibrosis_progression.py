"""Probes of OSIC Pulmonary Fibrosis Progression."""

from __future__ import annotations

import io
import math

import pandas as pd
import pytest

from tests.competitions.issues._probe import World, cell, remade, table_bytes

ID = "Patient_Week"


def scored(world: World) -> pd.DataFrame:
    """The rows of the answers with a measurement, in the order of the visits."""
    visits = world.truth[world.truth["visited"]] if "visited" in world.truth else world.truth.dropna(subset="FVC")
    parts = visits[ID].str.rsplit("_", n=1, expand=True)
    return visits.assign(Patient=parts[0], Weeks=parts[1].astype(int)).sort_values(["Patient", "Weeks"])


def test_rows_may_be_left_out(v1: World, v2: World) -> None:
    """Whoever knows one visit and leaves out all others has the best possible score."""
    known = scored(v1).groupby("Patient").tail(1)[:1][[ID, "FVC"]].assign(Confidence=70)
    assert v1.grade(known) > v1.grade(v1.sample) + 1
    assert v1.grade(known) == pytest.approx(-math.log(math.sqrt(2) * 70))
    assert v2.refusal(known)


def test_nan_score(v1: World, v2: World) -> None:
    """One blank cell, and the run has no score."""
    for world in (v1, v2):
        blank = world.sample.assign(FVC=world.sample["FVC"].where(world.sample[ID] != scored(world)[ID].iloc[-1], ""))
        assert math.isnan(world.grade(blank)) if world is v1 else "empty" in world.refusal(blank)


def test_first_visit_scored(v1: World, v2: World) -> None:
    """A patient who came three times: the first result, a third of what is scored, is in test.csv."""

    def three_visits(content: bytes) -> bytes:
        return table_bytes(pd.read_csv(io.BytesIO(content)).sort_values("Weeks").groupby("Patient").head(3))

    for edition, world in remade(v1, {"train.csv": three_visits}).items():
        visits = world.table("test.csv")
        public = dict(zip(visits["Patient"] + "_" + visits["Weeks"].astype(str), visits["FVC"], strict=True))
        sample = world.sample.assign(FVC=2000.0)
        copied = sample.assign(FVC=sample[ID].map(public).fillna(2000.0))
        assert (world.grade(copied) > world.grade(sample)) == (edition == "v1")


def test_weeks_of_all_visits(v1: World, v2: World) -> None:
    """The sample submission begins with the first and ends with the last visit of any test patient."""

    def weeks(world: World) -> tuple[int, int]:
        listed = world.sample[ID].str.rpartition("_")[2].astype(int)
        return listed.min(), listed.max()

    assert weeks(v1) == (scored(v1)["Weeks"].min(), scored(v1)["Weeks"].max())
    assert weeks(v2) == (-12, 133)


def test_unscored_rows_unchecked(v1: World, v2: World) -> None:
    """The validation service tells when each test patient came: only rows of these weeks must not be repeated."""
    last = set(scored(v1).groupby("Patient").tail(3)[ID])

    def repeated(world: World, row: int) -> pd.DataFrame:
        return pd.concat([world.sample, world.sample[row : row + 1]])

    def infinite(world: World, row: int) -> pd.DataFrame:
        return cell(world.sample, "FVC", "inf", row)

    asked = range(40)
    refused = {v1.sample[ID][row] for row in asked if v1.refusal(repeated(v1, row))}
    assert refused == last & {*v1.sample[ID][:40]} != set()
    assert all(v2.refusal(repeated(v2, row)) and v2.refusal(infinite(v2, row)) for row in asked)
