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
save_run = lambda cfg, journal: None
class Journal(list):
    nodes = property(lambda self: self)
    def get_best_node(self):
        return max((n for n in self if not n.is_buggy), key=lambda n: n.metric.value)
def run():
    cfg, journal = N(workspace_dir="."), Journal()
    pathlib.Path("working").mkdir()
    for value, buggy in ((0.5, False), (None, True), (0.9, False), (0.7, False)):
        pathlib.Path("working/submission.csv").write_text(f"id\\n{value}\\n")
        journal.append(N(is_buggy=buggy, metric=N(value=value), code="pass"))
        globals()["save_run"](cfg, journal)
"""


def test_each_candidate_is_reported(tmp_path: Path) -> None:
    package = tmp_path / "aide"
    (package / "backend").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "run.py").write_text(PACKAGE)
    (package / "backend" / "__init__.py").touch()
    (package / "backend" / "backend_openai.py").write_text("OPENAI_BASE_URL = ''")
    folders = {f"{name}_DIR": str(tmp_path) for name in ("SUBMISSION", "CODE", "LOGS")}
    environment = {**os.environ, **folders, "PYTHONPATH": str(tmp_path)}
    subprocess.run([sys.executable, str(SCRIPT)], cwd=tmp_path, env=environment, check=True)
    lines = [json.loads(line) for line in (tmp_path / "validation.jsonl").read_text().splitlines()]
    assert [(each["score"], each["submitted"]) for each in lines] == [(0.5, True), (0.9, True), (0.7, False)]
    assert [each["time"] for each in lines] == sorted(each["time"] for each in lines)
    assert (tmp_path / "submission.csv").read_text() == "id\n0.9\n"
