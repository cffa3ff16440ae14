"""The process with the answers, of which every grading is a fork."""

from __future__ import annotations

import dataclasses
import gc
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from common.concurrency import table_threads
from competitions import registry
from competitions.competition import Competition
from grading.workers.limits import Bounds
from grading.workers.server import Server
from tests.prepared import PreparedCompetitions


def test_it_has_no_threads_that_read_tables_when_it_forks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def answers(self: Competition, prepared: Path) -> Any:
        return table_threads().submit(int, "7").result()

    monkeypatch.setattr(Competition, "answers", answers)
    spec = {
        "folder": str(registry.get("digits").folder),
        "edition": "v1",
        "bounds": dataclasses.asdict(Bounds(1 << 20, 10, 100, 1 << 30, 10.0, 10.0)),
        "workers": 1,
        "validating": False,
        "prepared": str(tmp_path),
    }
    try:
        assert Server(spec, 0, 1).answers == 7
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("tables")]
    finally:
        gc.unfreeze()


_NEW_MODULES = """
import contextlib, sys
from pathlib import Path
import grading.workers.server
from competitions.competition import Competition
from competitions.scoring.errors import InvalidSubmission

competition, prepared, *submissions = Competition.load(Path(sys.argv[1])), *map(Path, sys.argv[2:])
competition.load_grader()
answers, before = competition.answers(prepared), set(sys.modules)
for submission in submissions:
    with contextlib.suppress(InvalidSubmission):
        competition.score(submission, answers)
print(*sys.modules.keys() - before)
"""


@pytest.mark.parametrize(
    "competition_id",
    ["alaska2-image-steganalysis", "digits", "google-quest-challenge", "multi-modal-gesture-recognition"],
)
def test_workers_import_nothing(competition_id: str, prepared: PreparedCompetitions, tmp_path: Path) -> None:
    """Each of them would, for its submission alone: scikit-learn takes a second."""
    subject = prepared[competition_id]
    gold = subject.path / subject.competition.facts.files.gold_submission
    words = tmp_path / "words.csv"
    header, *rows = gold.read_text().splitlines()
    words.write_text("\n".join([header, *(f"{row.rpartition(',')[0]},word" for row in rows), ""]))
    command = [sys.executable, "-c", _NEW_MODULES, subject.competition.folder, subject.path, gold, words]
    found = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
