"""Folders of forks in the published format through the published interface, and their prepared data adopted."""

from __future__ import annotations

from pathlib import Path

import pytest

from competitions import registry as catalog
from competitions.errors import BadCompetition
from competitions.preparing import limits
from mlebench.data import get_leaderboard, is_dataset_prepared
from mlebench.grade import grade_csv, validate_submission
from mlebench.registry import Registry
from storage.datasets.adopt import adopt
from storage.store import Store
from tests.published_folders import copy_forks, write_downloads


def test_a_fork_s_competition_is_used_as_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "scratch", tmp_path / "scratch")
    catalog.extend([copy_forks(tmp_path / "forks")])
    competition = Registry(tmp_path / "data").get_competition("signal-strength")
    competition.prepare_fn(
        write_downloads(tmp_path / "raw") / "signal-strength", competition.public_dir, competition.private_dir
    )
    assert is_dataset_prepared(competition)
    report = grade_csv(competition.gold_submission, competition)
    assert (report.score, report.gold_medal, report.is_lower_better) == (0.0, True, True)
    assert validate_submission(competition.sample_submission, competition) == (True, "Submission is valid.")
    assert get_leaderboard(competition)["score"].tolist() == [0.1, 0.5, 2.0, 5.0]

    board = tmp_path / "forks" / "signal-strength" / "leaderboard.csv"
    assert competition.leaderboard == board
    board.write_text('score\n0.0\n1.0\n2.0\n""\n')
    report = grade_csv(competition.gold_submission, competition)
    assert (report.gold_threshold, report.is_lower_better) == (0.0, True), "another leaderboard, with a missing score"

    store = Store(str(tmp_path / "store"))
    adopted = adopt(store, catalog.get("signal-strength"), tmp_path / "data" / "signal-strength" / "prepared")
    assert adopted.dataset.key


@pytest.mark.parametrize("broken", ["import no_such_module\n", "def grade(:\n", "raise SystemExit\n"])
def test_a_fork_s_grader_that_cannot_be_imported_is_an_error(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "scratch", tmp_path / "scratch")
    catalog.extend([copy_forks(tmp_path / "forks")])
    competition = Registry(tmp_path / "data").get_competition("signal-strength")
    competition.prepare_fn(
        write_downloads(tmp_path / "raw") / "signal-strength", competition.public_dir, competition.private_dir
    )
    grade = tmp_path / "forks" / "signal-strength" / "grade.py"
    grade.write_text(broken + grade.read_text())
    with pytest.raises(BadCompetition):
        grade_csv(competition.gold_submission, competition)
