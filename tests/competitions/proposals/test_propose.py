"""What is proposed for downloads of each kind, and that names in them stay names."""

from __future__ import annotations

import ast
from pathlib import Path

import pandas as pd
import pytest

from competitions.preparing.download import Download
from competitions.proposals.about import About
from competitions.proposals.grade_code import grade_code
from competitions.proposals.kinds import kind_of
from competitions.proposals.layout import Layout, read_layout
from competitions.proposals.metrics import METRICS, metric_of
from competitions.proposals.prepare_code import prepare_code
from competitions.proposals.propose import Proposal, propose

# Kaggle's names of metrics, as its API has them.
NAMES = {
    "AUC": "roc_auc",
    "Area Under Receiver Operating Characteristic Curve": "roc_auc",
    "Mean Columnwise Area Under Receiver Operating Characteristic Curve": "roc_auc",
    "Categorization Accuracy": "accuracy",
    "Log Loss": "log_loss",
    "Multiclass Loss": "log_loss",
    "Multiclass Logarithmic Loss": "log_loss",
    "Root Mean Squared Error": "rmse",
    "Root Mean Squared Logarithmic Error": "rmsle",
    "Mean Absolute Error": "mae",
    "Mean Columnwise Root Mean Squared Error": "rmse",
    "Quadratic Weighted Kappa": "quadratic_weighted_kappa",
    "MacroFScore": "f1_macro",
    "MAP@{K}": "mean_average_precision_at_k",
    "Levenshtein Mean": "levenshtein",
    "Matthews Correlation Coefficient": "matthews_corrcoef",
    "Spearman Rank Correlation Coefficient": "spearman",
    "Dice": "dices",
}


def layout_of(folder: Path, **tables: pd.DataFrame) -> Layout:
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    return read_layout(Download.open(str(folder)))


def proposed(folder: Path, text: str = "Accuracy.", **tables: pd.DataFrame) -> tuple[Proposal, Layout]:
    layout = layout_of(folder, **tables)
    return propose(layout, About("some", pages=(("evaluation", text),))), layout


def rows(count: int, **columns: object) -> pd.DataFrame:
    return pd.DataFrame({"id": [f"r{number}" for number in range(count)], **columns})


@pytest.mark.parametrize(("name", "function"), NAMES.items())
def test_metrics_are_found_by_the_names_of_kaggle(name: str, function: str) -> None:
    assert metric_of("number", name, "").value.function == function


def test_what_is_no_metric_of_ours_is_a_gap() -> None:
    for name in (
        "Hausdorff distance",
        "Laplace Log Likelihood",
        "mean average precision",
        "weighted AUC",
        "partial AUC above 80 % true positives",
        "area under the precision-recall curve",
        "normalized Gini coefficient, 2 * AUC - 1",
        "balanced accuracy",
        "mean absolute percentage error",
        "top-5 accuracy",
    ):
        found = metric_of("number", name, "")
        assert found.value.cells == "none", name
        assert not found.sure
    assert not metric_of("number", "", "RMSE, of which only the last rows count.").sure, "the text changes it"
    assert metric_of("classes", "", "The quadratic weighted kappa.").sure


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("number", "RMSE between the logarithm of the predicted price and that of the true one."),
        ("number", "RMSE, where true target values are clipped to 20."),
        ("number", "The mean of the Pearson correlation coefficient for each day."),
        ("binary", "A macro-averaged AUC that skips classes without positive rows."),
        ("several numbers", "RMSLE of all predictions."),
        ("item lists", "The mean of AUC for new classes and MAP@20 for the others."),
    ],
)
def test_a_definition_that_differs_from_the_function_is_doubted(kind: str, text: str) -> None:
    assert not metric_of(kind, "", text).sure


def test_what_a_page_explains_beside_the_metric_is_no_doubt() -> None:
    assert metric_of("binary", "", "ROC AUC. For each id, predict y. A submission file has only two columns.").sure
    assert metric_of("several labels", "", "AUC is calculated for each of the 7 defect categories and averaged.").sure
    assert metric_of("item lists", "", "The row-wise micro averaged F1 score.").value.function == "f1_mean_sets"


def test_functions_of_the_table_exist() -> None:
    from importlib import import_module

    for _, metric in METRICS:
        for function in filter(None, (metric.function, metric.of_several)):
            assert hasattr(import_module(f"competitions.scoring.metrics.{metric.module}"), function)


@pytest.mark.parametrize(
    ("kind", "cells"),
    [
        ("binary", [0, 1] * 10),
        ("classes", [0, 1, 2, 3] * 5),
        ("classes", ["cat", "dog", "a horse", "fish"] * 5),
        ("number", [number / 7 for number in range(20)]),
        ("masks", [f"{number} 3 {number + 9} 4" for number in range(20)]),
        ("boxes", [f"car {number}.5 1 2 3.5 4" for number in range(20)]),
        ("item lists", ["a b", "b c", "a", "c", "a b c"] * 4),
        ("text", [f"sentence number {number}, which is long." for number in range(20)]),
    ],
)
def test_kinds(tmp_path: Path, kind: str, cells: list[object]) -> None:
    train = rows(20, y=cells)
    found, _ = proposed(tmp_path, train=train, sample_submission=train.head(3))
    assert kind_of(found.columns.labels.value, found.columns.targets).value == kind


def test_columns_of_classes_come_from_a_column_of_names(tmp_path: Path) -> None:
    train = rows(20, breed=["cat", "dog"] * 10)
    sample = pd.DataFrame({"id": ["x", "y"], "cat": 0.5, "dog": 0.5})
    found, layout = proposed(tmp_path, "Multiclass log loss.", labels=train, sample_submission=sample)
    assert found.kind.value == "class probabilities"
    assert 'one_hot(test["breed"], names)' in prepare_code(found, layout)
    assert "rescaled_rows" in grade_code(found)
    assert "CHECK" not in prepare_code(found, layout) + grade_code(found)


def test_units_and_time_are_held_out_as_kaggle_did(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    train, test = rows(60, patient_id=[n // 3 for n in range(60)], y=0.5), rows(30, patient_id=99)
    found, _ = proposed(first, train=train, test=test, sample_submission=test[["id"]].assign(y=0))
    assert (found.split.value.by, found.split.value.column, found.split.sure) == ("units", "patient_id", True)
    days = [f"2024-01-{day:02}" for day in range(1, 21)]
    train, test = rows(20, date=days, y=0.5), rows(2, date=["2024-02-01", "2024-02-02"])
    found, layout = proposed(second, train=train, test=test, sample_submission=test[["id"]].assign(y=0))
    assert (found.split.value.by, found.split.value.column, found.split.sure) == ("time", "date", True)
    assert 'hold_out_last(table, "date", 0.1)\n' in prepare_code(found, layout)


def test_the_test_set_is_a_tenth_or_kaggles_share_if_that_is_smaller(tmp_path: Path) -> None:
    shares = {}
    for count in (3, 150, 2000):
        folder = tmp_path / str(count)
        folder.mkdir()
        train = rows(4850, y=[0, 1] * 2425)
        found, _ = proposed(folder, train=train, sample_submission=rows(count, y=0))
        shares[count] = found.split.value.share
    assert shares == {3: 0.1, 150: 0.03, 2000: 0.1}, "three rows are a placeholder of hidden ones"


def test_labels_of_test_rows_are_neither_features_nor_given_to_agents(tmp_path: Path) -> None:
    train = rows(60, y=[0, 1] * 30)
    found, layout = proposed(tmp_path, train=train, test_labels=train.head(9), sample_submission=train.head(9))
    assert found.columns.test is None
    assert found.columns.labels.value is not None
    assert found.columns.labels.value.table.name == "train.csv"
    assert "test_labels" not in prepare_code(found, layout)


def test_rows_that_equal_others_are_named(tmp_path: Path) -> None:
    train = rows(
        40, text=["a question that was asked by two people, word for word"] * 2 + [str(n) * 60 for n in range(38)]
    )
    train["y"] = [0, 1] * 20
    found, _ = proposed(tmp_path, train=train, sample_submission=train[["id", "y"]].head(3))
    assert (found.split.sure, found.split.reason[:20]) == (False, "2% of the rows equal")


def test_a_target_that_the_test_data_have_is_doubted(tmp_path: Path) -> None:
    train = rows(20, text=["a", "b"] * 10)
    found, _ = proposed(tmp_path, train=train, test=train, sample_submission=train)
    assert not found.columns.labels.sure


def test_names_of_columns_and_files_stay_names(tmp_path: Path) -> None:
    evil = 'y"]\nimport os\nos.system("true")  #'
    train = pd.DataFrame({"id": range(20), evil: ["p 1", "q 2"] * 10, "other": 1})
    sample = pd.DataFrame({"id": [1, 2], "prediction": ["p", "q"]})
    found, layout = proposed(tmp_path, "nothing", train=train, sample_submission=sample)
    for code in (prepare_code(found, layout), grade_code(found)):
        tree = ast.parse(code)
        assert "os" not in {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
        assert "os.system" not in {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert "CHECK: " in prepare_code(found, layout)


def test_files_are_found_by_ids_also_in_folders_and_with_zeros(tmp_path: Path) -> None:
    train = pd.DataFrame({"case": range(1, 21), "y": [0, 1] * 10})
    for number in train["case"]:
        (tmp_path / "train" / f"{number:04}").mkdir(parents=True)
        (tmp_path / "train" / f"{number:04}" / "a.png").write_bytes(b"")
    found, layout = proposed(tmp_path, train_labels=train, sample_submission=train.head(2))
    assert [(each.pattern, each.column, each.folder) for each in found.files.value] == [("train/{:04}/", "case", True)]
    assert 'copy_tree(folder.format(name), raw, "train/{:04}".format(name))' in prepare_code(found, layout)


def _with_files(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")


def test_files_that_kaggle_has_of_training_rows_only_are_not_given_for_test_rows(tmp_path: Path) -> None:
    train = rows(20, y=[0, 1] * 10)
    for name in train["id"]:
        _with_files(
            tmp_path, f"train/images/{name}.png", f"train/masks/{name}.png", f"train/images/{name}-outline.json"
        )
    _with_files(tmp_path, "test/images/t1.png", "test/images/t1-outline.json")
    _, layout = found = proposed(tmp_path, train=train, sample_submission=rows(3, y=0))
    code = prepare_code(*found)
    assert layout.files
    assert 'test["id"], to="test/images/{}.png"' in code
    assert 'test["id"], to="test/images/{}-outline.json"' in code
    assert 'raw.each("train/masks/{}.png", train["id"])' in code
    assert "test/masks" not in code
    assert "CHECK" not in code


def test_several_sets_of_files_are_doubted_if_nothing_tells_which_are_answers(tmp_path: Path) -> None:
    train = rows(20, y=[0, 1] * 10)
    for name in train["id"]:
        _with_files(tmp_path, f"train/images/{name}.png", f"train/masks/{name}.png")
    assert "CHECK: Kaggle's files of test rows are not" in prepare_code(
        *proposed(tmp_path, train=train, sample_submission=rows(3, y=0))
    )


def test_folders_of_rows_with_more_in_them_than_those_of_test_rows_are_doubted(tmp_path: Path) -> None:
    train = rows(20, y=[0, 1] * 10)
    for name in train["id"]:
        _with_files(tmp_path, f"train/{name}/band.npy", f"train/{name}/mask.npy")
    _with_files(tmp_path, "test/t1/band.npy")
    found = proposed(tmp_path, train=train, sample_submission=rows(3, y=0))
    assert "CHECK: folders of test rows have no mask.npy" in prepare_code(*found)


def test_further_tables_that_kaggle_has_of_training_rows_only_are_not_given_for_test_rows(tmp_path: Path) -> None:
    train = rows(40, molecule=[f"m{n // 2}" for n in range(40)], y=0.5)
    test = pd.DataFrame({"id": ["t1", "t2"], "molecule": ["n1", "n2"]})
    parts = pd.DataFrame({"molecule": train["molecule"], "part_of_y": 0.1})
    places = pd.DataFrame({"molecule": [*train["molecule"], "n1", "n2"], "place": 1})
    sample = test[["id"]].assign(y=0)
    found = proposed(tmp_path, train=train, test=test, sample_submission=sample, parts=parts, places=places)
    code = prepare_code(*found)
    assert 'out.public.table("parts.csv", rows[rows["molecule"].isin(train["molecule"])])' in code
    assert 'out.public.copy("places.csv", raw.file("places.csv"))' in code


def test_answers_that_kaggle_has_published_stay_private(tmp_path: Path) -> None:
    train = rows(20, labels=["cat,dog", "dog"] * 10)
    published = pd.DataFrame({"id": ["t1", "t2"], "labels": "cat", "usage": "Private"})
    sample = pd.DataFrame({"id": ["t1", "t2"], "cat": 0, "dog": 0})
    found = proposed(tmp_path, "Mean AUC.", train=train, test_after=published, sample_submission=sample)
    assert "test_after" not in prepare_code(*found)


def test_two_tables_that_could_be_those_of_the_labels_are_named(tmp_path: Path) -> None:
    good, noisy = rows(20, y=[0, 1] * 10), rows(30, y=[0, 1] * 15)
    found, _ = proposed(tmp_path, train_good=good, train_noisy=noisy, sample_submission=rows(3, y=0))
    assert found.columns.labels.reason == "train_noisy.csv could be the table of the labels as well"
    assert not found.columns.labels.sure
