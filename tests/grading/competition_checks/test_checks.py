"""The self-check finds what it looks for, in a competition made wrong on purpose."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pandas as pd
import pytest

from competitions.competition import Competition
from flows.commands.new import TEMPLATE
from grading.competition_checks import checks, subject
from grading.competition_checks.description import example_problems
from grading.competition_checks.gates import GATES
from grading.competition_checks.hostile import hostile_submissions
from grading.competition_checks.replaced_answers import replaced_answers
from grading.competition_checks.run import Result, check_download, check_prepared, measured_of
from storage.datasets import prepare

Edit = Callable[[str, str, str], None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TEMPLATE, tmp_path / "my-competition"))


@pytest.fixture
def edit(folder: Path) -> Edit:
    def change(name: str, old: str, new: str) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return change


SLOW = ("hostile", "validity")
"""Checks that grade hundreds of submissions: left out where a test is about the others."""


def results(folder: Path, tmp_path: Path, slow: bool = True) -> dict[str, Result]:
    wanted = {name: check for name, check in checks.CHECKS.items() if slow or name not in SLOW}
    with patch.dict(checks.CHECKS, wanted, clear=True), patch.dict(GATES, clear=True):
        found = check_download(
            measured_of(Competition.load(folder), tmp_path / "prepared", "v1"), None, tmp_path, prepare
        )
        return {result.check: result for result in found}


def failed(folder: Path, tmp_path: Path, slow: bool = False) -> dict[str, str]:
    found = results(folder, tmp_path, slow).items()
    return {name: " ".join(result.problems) for name, result in found if result.verdict == "failed"}


def test_the_template_passes(folder: Path, tmp_path: Path) -> None:
    found = results(folder, tmp_path)
    assert {result.verdict for result in found.values()} == {"ok"}
    assert list(found) == [
        "bundle",
        "prepare",
        "repeat",
        "facts",
        "marks",
        "description",
        "sample",
        "gold",
        "order",
        "secrecy",
        "public",
        "hostile",
        "validity",
    ]


def test_a_preparation_that_fails_is_told_and_the_rest_skipped(folder: Path, edit: Edit, tmp_path: Path) -> None:
    edit("prepare.py", '"train.csv"), 0.2', '"trian.csv"), 0.2')
    found = results(folder, tmp_path)
    assert "Did you mean train.csv" in found["prepare"].problems[0]
    assert found["hostile"].verdict == "skipped"


def test_validity_that_tells_the_answers(folder: Path, edit: Edit, tmp_path: Path) -> None:
    right = '    return rmse(answers["area"], numbers(submission, "area"))'
    edit(
        "grade.py", right, '    numbers(submission[answers["area"] > answers["area"].median()], "area")\n    return 1.0'
    )
    problem = failed(folder, tmp_path, slow=True)["validity"]
    assert "'valid' with the answers" in problem
    assert "with the answers of other rows" in problem


def test_another_test_set_every_time(folder: Path, edit: Edit, tmp_path: Path) -> None:
    edit("prepare.py", '"train.csv"), 0.2)', '"train.csv"), 0.2, seed=None)')
    assert "private/test.csv differs" in failed(folder, tmp_path)["repeat"]


def test_columns_in_the_order_of_a_set(folder: Path, edit: Edit, tmp_path: Path) -> None:
    """The order of texts in a set is another one in each process."""
    edit(
        "prepare.py",
        "    out = Preparation()",
        "    train = train.assign(**{str(number): 0 for number in range(50)})\n"
        "    train = train[[*{*train.columns}]]\n    out = Preparation()",
    )
    assert failed(folder, tmp_path)["repeat"] == "public/train.csv differs"


def test_a_file_that_the_description_does_not_name(folder: Path, edit: Edit, tmp_path: Path) -> None:
    edit("description.md", "`test.csv`", "the test set")
    assert failed(folder, tmp_path) == {"facts": "description.md does not name test.csv"}


def test_answers_in_public(folder: Path, edit: Edit, tmp_path: Path) -> None:
    edit("prepare.py", 'test.drop(columns="area")', 'test[["id", "area"]]')
    found = failed(folder, tmp_path)
    assert found["secrecy"] == "private/test.csv is public/test.csv as well"
    assert set(found) == {"secrecy", "public"}


def test_answers_in_a_public_archive(folder: Path, edit: Edit, tmp_path: Path) -> None:
    edit("prepare.py", "import Params, Preparation", "import Params, Preparation, table")
    archive = 'out.public.archive("train.csv.zip", {"x": table(test[["id", "area"]])})'
    edit("prepare.py", "    return out", f"    {archive}\n    return out")
    edit("description.md", "`train.csv`", "`train.csv`, `train.csv.zip`")
    found = failed(folder, tmp_path)
    assert found["secrecy"] == "public/train.csv.zip holds private test.csv"
    assert "public/train.csv.zip/x has" not in found.get("public", ""), "only tables are read"


@pytest.mark.parametrize(
    ("code", "tells"),
    [
        ("test", "public/test.csv has the answers area in its column area (by id, 100% are equal)"),
        ('test.rename(columns={"area": "size"})', "has the answers area in its column size (by id"),
        ('test.rename(columns={"id": "row", "area": "size"})[["size", "row"]][::-1]', "in its column size (by row"),
        ('test.drop(columns="id")', "in its column area (row by row"),
        ("test.assign(area=test.area.round(1))", "public/test.csv has values in the answer column area"),
    ],
)
def test_answers_in_a_public_table(folder: Path, edit: Edit, tmp_path: Path, code: str, tells: str) -> None:
    edit("prepare.py", 'test.drop(columns="area")', code)
    found = failed(folder, tmp_path)
    assert set(found) == {"public"}
    assert tells in found["public"]


def test_a_public_file_that_is_named_after_answers(folder: Path, edit: Edit, tmp_path: Path) -> None:
    edit("prepare.py", "    return out", '    out.public.text("test_labels.csv", "x")\n    return out')
    edit("description.md", "`test.csv`", "`test.csv`, `test_labels.csv`")
    assert failed(folder, tmp_path) == {"public": "public/test_labels.csv is named like a file with answers"}


def test_a_metric_that_goes_the_other_way(folder: Path, edit: Edit, tmp_path: Path) -> None:
    edit("grade.py", "return rmse", "return -rmse")
    assert "the sample submission" in failed(folder, tmp_path)["gold"]


def test_rows_by_position(folder: Path, edit: Edit, tmp_path: Path) -> None:
    edit("grade.py", "submission, answers = align(", "align(")
    found = failed(folder, tmp_path)
    assert "in another order" in found["order"]


def test_a_grader_without_a_number_passes_nothing(folder: Path, edit: Edit, tmp_path: Path) -> None:
    edit("grade.py", "return rmse(", 'return float("nan") * rmse(')
    found = results(folder, tmp_path, slow=False)
    assert {found[name].verdict for name in ("sample", "gold")} == {"failed"}
    assert found["order"].problems == ("the rows of the gold submission score NaN: the grader returns no number",)


def test_rows_by_position_as_declared(folder: Path, edit: Edit, tmp_path: Path) -> None:
    edit("grade.py", "submission, answers = align(", "align(")
    edit("competition.yaml", "source: bundled", "oddities: [rows-by-position]\nsource: bundled")
    assert not failed(folder, tmp_path, slow=True)


def test_a_grader_that_falls_over(folder: Path, edit: Edit, tmp_path: Path) -> None:
    edit("grade.py", 'numbers(submission, "area")', 'submission["area"]')
    found = failed(folder, tmp_path, slow=True)["hostile"]
    assert "cells: blank in one: raises ValueError: could not convert string to float" in found
    assert "in all: 76 times ValueError in my-competition/grade.py, line 17; raise InvalidSubmission, as" in found


def test_an_exception_is_shown_once_with_file_and_line(folder: Path, edit: Edit, tmp_path: Path) -> None:
    edit("grade.py", "    return rmse", "    1 / 0\n    return rmse")
    line = (folder / "grade.py").read_text().splitlines().index("    1 / 0") + 1
    found = results(folder, tmp_path)
    shown = [problem for result in found.values() if result.verdict == "failed" for problem in result.problems]
    assert shown == [f"raises ZeroDivisionError: division by zero (my-competition/grade.py, line {line})"]
    assert {name for name, result in found.items() if result.verdict == "skipped"} == {
        "gold", "order", "hostile", "validity"
    }  # fmt: skip


def test_an_exception_in_prepare_has_file_and_line(folder: Path, edit: Edit, tmp_path: Path) -> None:
    edit("prepare.py", 'drop(columns="area")', 'drop(columns="aera")')
    line = next(n for n, text in enumerate((folder / "prepare.py").read_text().splitlines(), 1) if "aera" in text)
    assert f"(my-competition/prepare.py, line {line})" in failed(folder, tmp_path)["prepare"]


def test_an_example_with_other_columns(folder: Path, edit: Edit, tmp_path: Path) -> None:
    edit("description.md", "id,area\n", "id,size\n")
    expected = "the example in description.md has the columns id, size, the sample submission id, area"
    assert failed(folder, tmp_path) == {"description": expected}


def test_an_example_with_an_ellipsis() -> None:
    section = "```\nid,a,...,z\n1,0,...,0\n```\n"
    assert not list(example_problems(section, ["id", "a", "b", "z"]))
    assert list(example_problems(section, ["id", "a", "b"]))
    assert not list(example_problems("without an example", ["id"]))


def test_another_direction_or_metric_than_in_the_facts(folder: Path, edit: Edit, tmp_path: Path) -> None:
    edit("description.md", "Lower is better", "Higher is better")
    problem = "description.md says higher is better, competition.yaml lower"
    assert failed(folder, tmp_path) == {"description": problem}
    edit("description.md", "Higher is better", "Lower is better")
    edit("description.md", "Root mean squared error", "Mean absolute error")
    (tmp_path / "other").mkdir()
    found = failed(folder, tmp_path / "other")["description"]
    assert found == "description.md says the metric is absolute error, competition.yaml root mean squared error"


def test_what_is_left_of_the_template(folder: Path, edit: Edit, tmp_path: Path) -> None:
    for name in ("bundle.py", "prepare.py", "grade.py"):
        edit(name, '"area"', '"height"')
    edit("prepare.py", "assign(area=", "assign(height=")
    edit("bundle.py", "    area = table", "    height = table")
    edit("bundle.py", "(area + random", "(height + random")
    found = failed(folder, tmp_path)["description"]
    assert "still has a line of the template: 'State what the agent has to predict" in found
    assert "still has the template's name 'My competition'" in found
    assert "state thresholds for your own scores" in found


def test_a_grader_that_changes_the_answers(folder: Path, edit: Edit, tmp_path: Path) -> None:
    spoil = '    answers.loc[numbers(submission, "area") > 1e6, "area"] = 0\n'
    edit("grade.py", "    return rmse", f"{spoil}    return rmse")
    edit("grade.py", "submission, answers = align(", "submission, _ = align(")
    found = failed(folder, tmp_path, slow=True)["hostile"]
    assert "before the hostile submissions" in found


def test_a_message_that_tells_an_answer(folder: Path, edit: Edit, tmp_path: Path) -> None:
    edit("grade.py", "import pandas as pd\n", "import pandas as pd\n\nfrom grading import InvalidSubmission\n")
    reject = 'if submission["area"].isna().any():\n        raise InvalidSubmission(f"try {list(answers.area)}")'
    edit("grade.py", "    return rmse", f"    {reject}\n    return rmse")
    assert "from the answers" in failed(folder, tmp_path, slow=True)["hostile"]


def test_a_prepared_dataset_stays_as_it_is(folder: Path, tmp_path: Path) -> None:
    results(folder, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "prepared").rglob("*")}
    found = list(check_prepared(measured_of(Competition.load(folder), tmp_path / "prepared", "v1")))
    assert {result.verdict for result in found} == {"ok", "skipped"}
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "prepared").rglob("*")} == before


def test_hostile_files_are_not_made_of_large_samples(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "MAX_SAMPLE_BYTES", 100)
    result = results(folder, tmp_path)["hostile"]
    assert result.verdict == "skipped"
    assert "smaller download" in result.problems[0]


def test_hostile_submissions_have_names_of_their_own() -> None:
    names = [name for name, _ in hostile_submissions(b"id,a,b\n1,2,x y\n2,3,z\n", b"id,a,b\n1,2,x y\n2,3,z\n")]
    assert len(names) > 190
    assert len(names) == len(set(names))


def test_ids_that_the_sample_submission_repeats_are_no_secret() -> None:
    answers = pd.DataFrame({"id": ["a", "a", "b", "c"], "label": [1, 0, 1, 0]})
    told = [["a", "5"], ["a", "5"], ["b", "5"], ["c", "5"]]
    for _, other in replaced_answers(answers, ["id", "label"], told):
        assert other["id"].tolist() == ["a", "a", "b", "c"]
    [(how, other)] = replaced_answers(answers, ["id", "label"], [["a", "5"], ["b", "5"], ["c", "5"]])
    assert how == "the answers of other ids"
    assert other.groupby("id").size().tolist() != [2, 1, 1]


def test_an_order_is_a_secret_although_its_words_are_public() -> None:
    answers = pd.DataFrame({"id": ["a"], "cells": ["1 2 3 4 5 6 7 8"]})
    [(_, other)] = replaced_answers(answers, ["id", "cells"], [["a", "8 7 6 5 4 3 2 1"]], ["cells"])
    assert other["cells"][0] != answers["cells"][0]
    assert sorted(other["cells"][0].split()) == sorted(answers["cells"][0].split())
