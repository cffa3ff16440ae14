"""The script that runs AIDE reports each candidate: in a real process, with a stand-in for the package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import sandbox

SCRIPT = Path(sandbox.__file__).parent / "agents" / "aide" / "aide_run.py"
# Four steps of a metric of which more is better: the second is buggy, the fourth is worse than the third.
PACKAGE = """
from types import SimpleNamespace as N
import pathlib
from aide.journal import Journal
save_run = lambda cfg, journal: pathlib.Path("journal.json").write_text(str(len(journal)))
def run():
    cfg, journal = N(workspace_dir=".", log_dir="."), Journal()
    pathlib.Path("working").mkdir(exist_ok=True)
    for value, buggy in ((0.5, False), (None, True), (0.9, False), (0.7, False))[len(journal):]:
        pathlib.Path("working/submission.csv").write_text(f"id\\n{value}\\n")
        journal.append(N(is_buggy=buggy, metric=N(value=value), code="pass"))
        globals()["save_run"](cfg, journal)
"""
JOURNAL = """
from types import SimpleNamespace as N
class Journal(list):
    nodes = property(lambda self: self)
    def get_best_node(self):
        return max((n for n in self if not n.is_buggy), key=lambda n: n.metric.value)
"""
SERIALIZE = """
from types import SimpleNamespace as N
def load_json(path, cls):
    return cls(N(is_buggy=False, metric=N(value=0.8), code="pass") for _ in range(int(path.read_text())))
"""


def test_each_candidate_is_reported_and_a_journal_is_continued(tmp_path: Path) -> None:
    package = tmp_path / "aide"
    (package / "backend").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "run.py").write_text(PACKAGE)
    (package / "journal.py").write_text(JOURNAL)
    (package / "utils").mkdir()
    (package / "utils" / "__init__.py").touch()
    (package / "utils" / "serialize.py").write_text(SERIALIZE)
    (package / "utils" / "metric.py").write_text("class WorstMetricValue: pass\n")
    (package / "backend" / "__init__.py").touch()
    (package / "backend" / "backend_openai.py").write_text("OPENAI_BASE_URL = ''")
    folders = {f"{name}_DIR": str(tmp_path) for name in ("SUBMISSION", "CODE", "LOGS")}
    environment = {**os.environ, **folders, "PYTHONPATH": str(tmp_path), "HOME": str(tmp_path)}
    command = [sys.executable, str(SCRIPT)]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    session = tmp_path / ".aide" / "journal.json"
    assert session.read_text() == "4"
    lines = [json.loads(line) for line in (tmp_path / "validation.jsonl").read_text().splitlines()]
    assert [(each["score"], each["submitted"]) for each in lines] == [(0.5, True), (0.9, True), (0.7, False)]
    assert [each["time"] for each in lines] == sorted(each["time"] for each in lines)
    assert (tmp_path / "submission.csv").read_text() == "id\n0.9\n"
    session.write_text("3")
    again = {**environment, "MLEBENCH_RESUMED": "1"}
    output = subprocess.run(command, cwd=tmp_path, env=again, check=True, stdout=subprocess.PIPE, text=True).stdout
    assert [json.loads(line) for line in output.splitlines()] == [
        {"resumed": 3},
        {"step": 4, "buggy": False, "metric": 0.7},
    ]
