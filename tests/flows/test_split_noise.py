"""mlebench split-noise: the table, the page, and submissions without a standard error."""

from __future__ import annotations

import pytest

from storage.tables import read_table
from tests.flows.graded import GROUP, dataset, graded, group, mlebench
from tests.stores import Store

__all__ = ["dataset", "graded", "group"]


def test_scores_have_standard_errors_in_the_table_and_on_the_page(
    group: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert mlebench("examine", "--only", "split-noise", GROUP, "--halves", 40, store=group) == 0
    assert "2 of 2 scores have a standard error" in capsys.readouterr().out
    table = read_table(group, "split_noise", [GROUP]).sort_values("seed")
    assert table["seed"].tolist() == [0, 1], "the third seed has no submission"
    perfect, sample = table.to_dict("records")
    assert (perfect["standard_error"], perfect["any_medal_probability"]) == (0, 1)
    assert sample["standard_error"] > 0
    assert sample["any_medal_probability"] < 0.05
    assert (sample["units"], sample["halves"]) == (133, 40)
    page = group.local("reports", GROUP, "report.html").read_text()
    assert "Split noise" in page
    assert "2 of 2" in page
    before = group.read_json(f"{group.run(GROUP, 'diabetes', 0)}/grade.json")
    assert mlebench("examine", "--only", "split-noise", GROUP, "--halves", 40, store=group) == 0
    assert group.read_json(f"{group.run(GROUP, 'diabetes', 0)}/grade.json") == before, "grades stay as they are"


def test_a_submission_that_was_changed_is_named(group: Store) -> None:
    url = group.run(GROUP, "diabetes", 0)
    group.write(f"{url}/submission.csv", group.read(f"{group.run(GROUP, 'diabetes', 1)}/submission.csv"))
    assert mlebench("examine", "--only", "split-noise", GROUP, store=group) == 0
    first = read_table(group, "split_noise", [GROUP]).sort_values("seed").iloc[0]
    assert "graded again" in first["message"]
    assert "graded again" in group.local("reports", GROUP, "report.html").read_text()
