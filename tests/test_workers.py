"""A session goes on when a test hangs, or when the process ends in which it runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONFTEST = """
import tests.conftest

tests.conftest.HANGS_SECONDS = 1.0
"""
HANGS = """
import threading

import pytest


def test_before(): pass


@pytest.mark.timeout(1)
def test_hangs():
    try:
        threading.Event().wait()
    finally:
        threading.Event().wait()


def test_after(): pass
"""


def test_a_hanging_test_is_named_and_the_others_run(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "test_fast.py").write_text("def test_fast(): pass")
    (tmp_path / "test_hangs.py").write_text(HANGS)
    (tmp_path / "test_other.py").write_text("import os\ndef test_ends(): os._exit(3)\ndef test_other(): assert False")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "1", "--dist", "loadfile", "-p", "tests.conftest"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    environment["PYTHONPATH"] = f"{ROOT}"
    done = subprocess.run(
        [*command, "-c", f"{tmp_path}/pytest.ini", "--rootdir", f"{tmp_path}", f"{tmp_path}"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    output = done.stdout + done.stderr
    assert done.returncode == 1, output
    assert "1 failed, 3 passed, 2 errors" in done.stdout, output
    named = [line for line in done.stdout.splitlines() if line[:2] in ("F ", "E ") and "::" in line]
    assert named == ["E test_hangs.py::test_hangs", "E test_other.py::test_ends", "F test_other.py::test_other"], output
    assert "in test_hangs" in done.stderr, "what its threads do"
