"""Modules in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from common import starting

MODULE = """
import gc, json, sys

class Ring:
    def __init__(self):
        self.me = self
    def __del__(self):
        print("collected")

Ring()
print(json.dumps([__name__, sys.argv[1:], list(gc.get_threshold()), "" in sys.path]), flush=True)
sys.exit(3)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "shows.py").write_text(MODULE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "shows"


def run(command: list[str], folder: Path) -> list[str]:
    env = {**os.environ, "PYTHONPATH": starting.search_path()}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 3, done.stderr
    return done.stdout.splitlines()


def test_a_module_is_started_as_python_does_with_few_collections_and_none_at_the_end(
    module: str, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (shown,) = run(starting.command(module, "one", "-m"), tmp_path / "elsewhere")
    assert json.loads(shown) == ["__main__", ["one", "-m"], list(starting.COLLECTIONS), False]
    alone, last = run([sys.executable, "-P", "-m", module, "one", "-m"], tmp_path / "elsewhere")
    assert json.loads(alone)[:2] == json.loads(shown)[:2]
    assert last == "collected", "what Python does at the end otherwise"
