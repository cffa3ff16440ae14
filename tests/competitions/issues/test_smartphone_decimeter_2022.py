"""Probes of Google Smartphone Decimeter Challenge 2022."""

from __future__ import annotations

import math

import pytest

from tests.competitions.issues._probe import World, cell, remade

POSITION = ["LatitudeDegrees", "LongitudeDegrees"]


def test_reference_receiver_log(v1: World, v2: World) -> None:
    """The receiver whose positions are the truth writes a log, which lies beside the data of the phones."""
    logs = {}
    for name in v1.kaggle.names("train"):
        if name.endswith("/ground_truth.csv"):
            rows = v1.kaggle.read_csv(name)[["UnixTimeMillis", *POSITION]].itertuples(index=False)
            lines = [f"$GPGGA,{time},{north},N,{-east},W\n" for time, north, east in rows]
            logs[name.replace("ground_truth.csv", "supplemental/span_log.nmea")] = "".join(lines).encode()
    worlds = remade(v1, logs)

    def metres(world: World) -> float:
        submission = world.sample
        for row, (trip, time) in enumerate(zip(submission["tripId"], submission["UnixTimeMillis"], strict=True)):
            drive, _, phone = trip.rpartition("-")
            log = world.public / "test" / drive / phone / "supplemental/span_log.nmea"
            for line in log.read_text().splitlines() if log.exists() else ():
                _, when, north, _, west, _ = line.split(",")
                if when == time:
                    submission.loc[row, POSITION] = [north, str(-float(west))]
        return world.grade(submission)

    assert metres(worlds["v1"]) < 0.01
    assert metres(worlds["v2"]) > 1_000


def test_rows_paired_by_position(v1: World, v2: World) -> None:
    """The right positions, each with its time, are wrong from the end to the beginning."""
    assert v1.grade(v1.perfect[::-1]) > 1
    assert v2.grade(v2.perfect[::-1]) == pytest.approx(0, abs=1e-6)


def test_nan_score(v1: World, v2: World) -> None:
    """One blank cell, and the run has no score."""
    blank = cell(v1.sample, POSITION[0], "")
    assert math.isnan(v1.grade(blank))
    assert "empty" in v2.refusal(blank)
