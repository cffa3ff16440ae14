"""mlebench plan: what a comparison needs, from the results of groups in the store or of imported reports."""

from __future__ import annotations

import json
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest

from grading.statistics.differences import Question
from grading.statistics.power import detectable, standard_error, variances
from storage.tables import read_table, write_frame
from tests.flows.graded import mlebench
from tests.stores import Store

IDS = ("spaceship-titanic", "leaf-classification", "aerial-cactus-identification", "icecube-neutrinos-in-deep-ice")
RATES = {"weak": 0.2, "strong": 0.6}


@pytest.fixture
def medals(store: Store) -> dict[str, np.ndarray]:
    """Two groups of 20 competitions x 3 seeds, of which one run is not graded; those of "weak" took 2 hours and $3."""
    generator = np.random.default_rng(0)
    tables = {group: (generator.random((20, 3)) < rate).astype(float) for group, rate in RATES.items()}
    tables["weak"][0, 2] = np.nan
    for group, table in tables.items():
        rows = [
            {"competition_id": f"competition-{place:02}", "seed": seed, "any_medal": bool(table[place, seed])}
            for place, seed in zip(*np.nonzero(~np.isnan(table)), strict=True)
        ]
        write_frame(store, "grades", group, pd.DataFrame(rows).assign(**facts(group)))
        runs = pd.DataFrame({name: [row[name] for row in rows] for name in ("competition_id", "seed")})
        runs = runs.assign(run_id=[f"{group}-{n}" for n in range(len(rows))], agent=group, edition="v1")
        if group == "weak":
            write_frame(store, "runs", group, runs.assign(duration_seconds=7200.0, gateway_cost_usd=3.0))
    return tables


def facts(group: str) -> dict[str, Any]:
    """The other columns of grades, the same in all rows."""
    rates = ("gold_medal", "silver_medal", "bronze_medal", "above_median")
    flags = {**dict.fromkeys(rates, False), "valid_submission": True, "submission_exists": True}
    who = {"run_id": group, "agent": group, "edition": "v1", "outcome": "valid", "score": 0.5, "is_lower_better": False}
    return {**flags, **who, "complexity": "medium", "category": "Tabular"}


def test_differences_that_are_detected_with_hours_and_dollars(
    store: Store, medals: dict[str, np.ndarray], capsys: pytest.CaptureFixture[str]
) -> None:
    assert mlebench("plan", *medals, "--json", store=store) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["competitions"], row["seeds"]) for row in rows] == [(c, n) for c in (22, 75) for n in (1, 2, 3, 5, 10)]
    known = variances(list(medals.values()))
    for row in rows:
        assert row["runs"] == row["competitions"] * row["seeds"]
        assert row["hours"] == pytest.approx(2 * row["runs"]), "of the runs with a known duration"
        assert row["dollars"] == pytest.approx(3 * row["runs"])
        for question in get_args(Question):
            error = standard_error(known, row["competitions"], row["seeds"], question)
            assert row[f"detectable_{question}"] == pytest.approx(100 * detectable(error, 0.8))
            wide = row[f"detectable_{question}"] > 5
            assert (row[f"power_{question}"] < 80) == wide


def test_a_table_and_what_suffices(
    store: Store, medals: dict[str, np.ndarray], capsys: pytest.CaptureFixture[str]
) -> None:
    assert mlebench("plan", *medals, "--difference", 15, store=store) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:5] == ["COMPETITIONS", "SEEDS", "RUNS", "HOURS", "DOLLARS"]
    assert head.count("POWER % FOR 15") == 2
    assert lines[9].split()[:5] == ["75", "10", "750", "1,500", "2,250.00"]
    assert "15 points on these competitions, with 80 % power: 22 competitions x 10 seeds" in lines
    assert "correlation" not in " ".join(lines)


def test_one_group_supposes_how_agents_differ(
    store: Store, medals: dict[str, np.ndarray], capsys: pytest.CaptureFixture[str]
) -> None:
    assert mlebench("plan", "strong", "--difference", 1, "--power", 90, store=store) == 0
    said = capsys.readouterr().out
    assert "supposing a correlation of 0.5" in said
    assert "n/a" in said.splitlines()[1], "nothing is known of its durations"
    assert "1 point on these competitions, with 90 % power: none of these; 75 competitions take" in said


def test_without_leaderboards_there_are_no_percentiles(
    store: Store, medals: dict[str, np.ndarray], capsys: pytest.CaptureFixture[str]
) -> None:
    assert mlebench("plan", *medals, "--figure", "percentile", store=store) == 1
    assert "how much runs vary is not known" in capsys.readouterr().err


@pytest.mark.parametrize("seeds", [1, 2])
def test_what_does_not_tell_how_much_runs_vary_is_refused(
    store: Store, seeds: int, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"competition_id": name, "seed": seed, "any_medal": True} for name in IDS for seed in range(seeds)]
    write_frame(store, "grades", "equal", pd.DataFrame(rows).assign(**facts("equal")))
    assert mlebench("plan", "equal", store=store) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "how much runs vary is not known; " in line
    assert line.endswith("name other groups")
    assert ("each competition's runs are equal in whether there is a medal" in line) == (seeds == 2)


def test_a_split_that_tells_nothing_takes_what_varies_in_all(
    store: Store, medals: dict[str, np.ndarray], capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the low split, only equal runs of two competitions."""
    capsys.readouterr()
    grades = read_table(store, "grades", ["strong"]).drop(columns="run_group")
    assert mlebench("plan", "strong", "--json", store=store) == 0
    before = capsys.readouterr().out
    equal = [f"competition-{place:02}" for place, runs in enumerate(medals["strong"]) if len(set(runs)) == 1][:2]
    low = grades["competition_id"].isin(equal)
    write_frame(store, "grades", "strong", grades.assign(complexity=low.map({True: "low", False: "high"})))
    assert mlebench("plan", "strong", "--json", store=store) == 0
    assert capsys.readouterr().out == before


def test_what_makes_the_figures_doubtful_is_said(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """A single demo competition tells nothing of how agents differ, nor of Low."""
    rows = [{"competition_id": "diabetes", "seed": seed, "any_medal": seed > 0} for seed in range(3)]
    write_frame(store, "grades", "demo", pd.DataFrame(rows).assign(**facts("demo") | {"complexity": "demo"}))
    assert mlebench("plan", "demo", store=store) == 0
    said = capsys.readouterr().out
    assert "measured on 1 competition (demo): rough, and not those of Low or All" in said
    assert "(low) take the variances of all: those of low are unknown" in said
    assert "none of these; how many competitions 10 seeds take is not known" in said
    assert "nan" not in said


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (["--power", "0.8"], "0.8 is not at least 50 and below 100 percent; did you mean 80?"),
        (["--power", "0.95"], "did you mean 95?"),
        (["--difference", "1e-200"], "1e-200 is not at least 0.01 and below 100 points"),
        (["--power", "group"], "'group' is no number; groups come first: mlebench plan GROUP --power 80"),
    ],
)
def test_a_wrong_number_is_refused_with_what_is_meant(
    store: Store, wrong: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mlebench("plan", "group", *wrong, store=store) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [["--difference", 0], ["--power", 100], ["--difference", "x"], ["--figure", "gold"]])
def test_a_wrong_use(store: Store, wrong: list[object]) -> None:
    assert mlebench("plan", "group", *wrong, store=store) == 2
    assert mlebench("plan", store=store) == 2
