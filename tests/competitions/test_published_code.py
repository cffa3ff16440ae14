"""The code of folders in the published format: of two directories, in threads, and after a change."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest

from competitions import registry
from competitions.scoring.errors import InvalidSubmission
from tests.published_folders import copy_forks


@pytest.fixture
def forks(tmp_path: Path) -> Path:
    return copy_forks(tmp_path / "forks")


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_two_forks_with_modules_of_the_same_names_do_not_mix(forks: Path, tmp_path: Path) -> None:
    other = copy_forks(tmp_path / "other")
    edit(other / "telecom_metrics.py", "** 2)", "** 2) + 1")
    truth = pd.DataFrame({"Id": [1, 2], "rssi": [1.0, 2.0]})
    first, second = registry.load(forks / "signal-strength"), registry.load(other / "signal-strength")
    assert [each.score_table(truth, truth) for each in (first, second, first)] == [0, 1, 0]


def test_forks_that_are_graded_in_threads_do_not_mix(forks: Path, tmp_path: Path) -> None:
    other = copy_forks(tmp_path / "other")
    edit(other / "telecom_metrics.py", "** 2)", "** 2) + 1")
    truth = pd.DataFrame({"Id": [1, 2], "rssi": [1.0, 2.0]})
    loaded = [registry.load(top / "signal-strength") for top in (forks, other)] * 10
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda each: each.score_table(truth, truth), loaded)) == [0, 1] * 10


def test_changed_code_and_facts_are_used_at_once(forks: Path) -> None:
    registry.extend([forks])
    truth = pd.DataFrame({"Id": [1, 2], "rssi": [1.0, 2.0]})

    def score() -> float:
        return registry.get("signal-strength").score_table(truth, truth)

    assert score() == 0
    edit(forks / "telecom_metrics.py", "** 2)", "** 2) + 1")
    assert score() == 1
    edit(forks / "signal-strength" / "grade.py", "return metrics", "return 2 * metrics")
    assert score() == 2
    (forks / "signal-strength" / "leaderboard.csv").write_text("score\n7\n8\n")
    assert registry.get("signal-strength").facts.leaderboard.gold == 7


def test_a_grader_that_ends_its_process_does_not_end_the_caller_s(forks: Path) -> None:
    (forks / "hourly-load" / "grade.py").write_text("import sys\ndef grade(*_):\n    sys.exit()\n")
    with pytest.raises(InvalidSubmission, match=r"\(SystemExit\)$"):
        registry.load(forks / "hourly-load").score_table(pd.DataFrame(), pd.DataFrame())


def test_a_clone_s_own_utilities_come_before_ours(forks: Path) -> None:
    body = "raise InterruptedError"
    (forks / "utils.py").write_text(f"def prepare_for_accuracy_metric(*_, **__): {body}\n")
    with pytest.raises(InvalidSubmission, match="InterruptedError"):
        registry.load(forks / "signal-strength").score_table(pd.DataFrame(), pd.DataFrame())
