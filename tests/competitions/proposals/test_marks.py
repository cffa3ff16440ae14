"""What is proposed by Kaggle's evidence, and what has to be marked because a name alone would decide."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import yaml

from competitions.preparing.download import Download
from competitions.preparing.holdout import hold_out_last
from competitions.proposals.about import About
from competitions.proposals.folder import write_folder
from competitions.proposals.grade_code import grade_code
from competitions.proposals.metrics import metric_of
from competitions.proposals.prepare_code import prepare_code
from tests.competitions.proposals.test_propose import proposed, rows

Tables = dict[str, pd.DataFrame]
TRAIN, TEST = 300, 150


def of_rows(first: int, count: int, **columns: object) -> pd.DataFrame:
    """Rows with ids that differ from those of other parts, and a feature."""
    ids = [f"r{number}" for number in range(first, first + count)]
    return pd.DataFrame({"id": ids, "a": [number * 37 % 101 / 7 for number in range(count)], **columns})


def both(train: dict[str, object], test: dict[str, object] | None = None, y: object = None) -> Tables:
    """A training table, a test table and a sample submission."""
    tests = of_rows(TRAIN, TEST, **(test or {}))
    trains = of_rows(0, TRAIN, **train, y=[0, 1] * (TRAIN // 2) if y is None else y)
    return {"train": trains, "test": tests, "sample_submission": tests[["id"]].assign(y=0)}


def by(count: int, size: int, start: int = 0, form: str = "{}") -> list[str]:
    return [form.format(start + number // size) for number in range(count)]


IDS = [f"r{number}" for number in range(TRAIN + TEST)]
PLAIN = both({})
SERIES = {
    "train_series": pd.DataFrame({"id": by(900, 3, form="r{}"), "t": [0, 1, 2] * 300, "x": 0.5}),
    "train_labels": of_rows(0, TRAIN, y=[0, 1] * 150).drop(columns="a"),
    "test_series": pd.DataFrame({"id": by(450, 3, TRAIN, "r{}"), "t": [0, 1, 2] * 150, "x": 0.5}),
    "sample_submission": PLAIN["sample_submission"],
}
DIAGNOSES = pd.DataFrame({"id": IDS, "diagnosis": ["mal", "ben"] * 150 + [""] * TEST})
DATES = [f"{1 + day % 28}/{1 + day // 28}/2020" for day in range(TRAIN)]
LATER = [f"{1 + day % 28}/{1 + day // 28}/2021" for day in range(TEST)]
FIRST_PART = {name: table.assign(id=table["id"].str.replace("r", "")) for name, table in PLAIN.items()}
for name, table in FIRST_PART.items():
    start = 0 if name == "train" else TRAIN
    table["id"] = [f"p{(start + number) // 5}/{number % 5}" for number in range(len(table))]
PLACEHOLDER = both({"patient_id": by(TRAIN, 10), "visit": by(TRAIN, 10)})
PLACEHOLDER |= {name: PLACEHOLDER["train"].head(5) for name in ("test", "sample_submission")}
PLACEHOLDER["test"] = PLACEHOLDER["test"].drop(columns="y")
PLACEHOLDER["sample_submission"] = PLACEHOLDER["sample_submission"][["id", "y"]]


@pytest.mark.parametrize(
    ("tables", "line", "marked"),
    [
        (SERIES, 'out.public.table("test_series.csv", rows.loc[rows["id"].isin(test["id"]), ["id", "t", "x"]])', False),
        ({**SERIES, "train_series": PLAIN["train"][["id", "a"]]}, 'out.public.table("test_series.csv"', True),
        ({**PLAIN, "biopsies": DIAGNOSES.head(TRAIN).set_axis(["case", "d"], axis=1)}, 'copy("biopsies.csv"', True),
        ({**PLAIN, "metadata": DIAGNOSES}, 'rows.loc[rows["id"].isin(test["id"]), ["diagnosis"]] = None', False),
        ({**PLAIN, "events": DIAGNOSES.head(TRAIN).set_axis(["ID", "d"], axis=1)}, '["ID"].isin(train["id"])', False),
        (both({"wellName": by(TRAIN, 5)}, {"wellName": by(TEST, 5, 90)}), 'by(table, "wellName"', False),
        (both({"col": by(TRAIN, 5, form="x{}")}, {"col": by(TEST, 5, 90, "x{}")}), 'by(table, "col"', False),
        (both({"patient_id": by(TRAIN, 50)}, {"patient_id": by(TEST, 50, 9)}), 'by(table, "patient_id"', True),
        (both({"subject": by(TRAIN, 5)}), 'by(table, "subject"', True),
        (both({"breed": by(TRAIN, 5, form="x{}")}), "hold_out(table", True),
        (both({"breed": by(TRAIN, 5, form="x{}")}, {"breed": by(TEST, 5, form="x{}")}), "hold_out(table", False),
        (FIRST_PART, '["id"].astype(str).str.extract("^(.*?)/", expand=False)', False),
        (PLACEHOLDER, 'by(table, "patient_id"', True),
        (both({"seen": DATES}, {"seen": LATER}), 'hold_out_last(table, "seen", 0.1)', False),
        (both({"week": by(TRAIN, 5)}, {"week": by(TEST, 5, 59)}), 'hold_out_last(table, "week", 0.1)', False),
        (both({"era": by(TRAIN, 5)}, {"era": by(TEST, 5, 90)}), 'hold_out_last(table, "era", 0.1)', False),
        (both({"level": by(TRAIN, 5)}, {"level": by(TEST, 5, 90)}), 'by(table, "level"', True),
        (both({"seen": ["", *DATES[1:]]}, {"seen": LATER}), 'hold_out_last(table, "seen"', True),
        (both({"year": [2018] * 15 + [2019] * 285}, {"year": 2020}), 'hold_out_last(table, "year"', True),
    ],
)
def test_lines_of_prepare(tmp_path: Path, tables: Tables, line: str, marked: bool) -> None:
    found = [each for each in prepare_code(*proposed(tmp_path, "AUC", **tables)).splitlines() if line in each]
    assert ["# CHECK: " in each for each in found] == [marked]


WELLS = both({"well": by(TRAIN, 5)}, {"well": by(TEST, 5, 90)})
TARGETS = [f"y{number}" for number in range(40)]
MANY_TARGETS = {
    name: table.assign(**dict.fromkeys(TARGETS, 0.5)).drop(columns="y", errors="ignore") if name != "test" else table
    for name, table in WELLS.items()
}
REPEATED = {name: table.assign(id=table.index // 5 + (0 if name == "train" else 90)) for name, table in PLAIN.items()}


@pytest.mark.parametrize(
    ("tables", "resampling"),
    [
        (PLAIN, None),
        (WELLS, {"column": "well"}),
        (FIRST_PART, {"pattern": "^(.*?)/"}),
        (MANY_TARGETS, {"unknown": "rows of one well belong together, and answers do not name it"}),
        (REPEATED, {"id": "id"}),
    ],
)
def test_competition_yaml_says_which_rows_belong_together(
    tmp_path: Path, tables: Tables, resampling: dict[str, str] | None
) -> None:
    (tmp_path / "raw").mkdir()
    proposal, layout = proposed(tmp_path / "raw", "AUC", **tables)
    raw = Download.open(str(tmp_path / "raw"))
    write_folder(tmp_path / "some", About("some", title="Some"), proposal, layout, raw)
    assert yaml.safe_load((tmp_path / "some" / "competition.yaml").read_text("utf-8")).get("resampling") == resampling


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("F1 score.", ["a,b", "b,c", "a", "c"]),
        ("F1 score.", ["a|b", "b|c", "a", "c"]),
        ("ROC AUC.", ["yes", "no"]),
        ("Quadratic weighted kappa.", ["low", "mid", "high"]),
        ("Log loss.", ["cat", "dog", "cow"]),
        ("Log loss.", [1, 2]),
    ],
)
def test_answers_that_the_function_cannot_take(tmp_path: Path, text: str, cells: list[object]) -> None:
    train = rows(60, y=(cells * 60)[:60])
    assert "# CHECK: " in grade_code(proposed(tmp_path, text, train=train, sample_submission=train.head(9))[0])


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [
        ("number", "", "RMSE of log(1+y)."),
        ("number", "", "The normalized root mean squared error."),
        ("number", "", "We compute the RMSE separately by station and average them."),
        ("number", "", "The score is 100*(1-RMSE/std)."),
        ("number", "RMSE", "Computed only on rows where is_scored is 1."),
        ("number", "RMSE", "Predictions are compared after exponentiation."),
        ("number", "", "The mean absolute error, of which the negative is taken."),
        ("number", "", "MAE with holiday weighting."),
        ("classes", "", "The weighted F1 score."),
        ("classes", "", "Mean F1-Score, micro averaged."),
        ("classes", "", "Mean class accuracy, an average of those of each class."),
        ("classes", "", "Worst-group accuracy."),
        ("binary", "", "2*AUC - 1"),
        ("binary", "", "The mean of AUC and accuracy."),
        ("binary", "", "The AUC for each user."),
        ("binary", "", "A cost-sensitive log loss."),
        ("text", "", "Normalized Levenshtein similarity."),
        ("masks", "", "Surface dice at a tolerance."),
        ("number", "", "Pearson correlation, weighted."),
        ("number", "", "Spearman correlation averaged per era."),
        ("classes", "Quadratic Weighted Kappa", "The kappas are averaged over essay sets."),
        ("classes", "Categorization Accuracy", "Top-3 accuracy."),
    ],
)
def test_metrics_that_only_look_like_a_function(kind: str, name: str, text: str) -> None:
    assert not metric_of(kind, name, text).sure


@pytest.mark.parametrize(
    ("days", "words"),
    [
        (["2020-01-01", None, "2020-01-03"], "1 of 3 cells of day are empty"),
        ([1] + [2] * 19, "are 95.0%, not about 10.0%"),
    ],
)
def test_rows_without_a_place_in_time_are_refused(days: list[object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        hold_out_last(pd.DataFrame({"day": days}), "day", 0.1)
