"""Threads of OpenBLAS sleep while they have nothing to do, which it has to be told before it is loaded."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SHOW = """
import os, sys
class Show:
    def find_spec(name, path=None, target=None):
        if name == "numpy":
            print(os.environ.get("OPENBLAS_THREAD_TIMEOUT"))
sys.meta_path.insert(0, Show)
import {module}
import numpy
"""


def told(module: str, **env: str) -> list[str]:
    """What OpenBLAS is told in a new process that imports this module, and then NumPy unless it did so."""
    own = {name: value for name, value in os.environ.items() if name != "OPENBLAS_THREAD_TIMEOUT"}
    command = [sys.executable, "-c", SHOW.format(module=module)]
    return subprocess.run(
        command, env=own | env, capture_output=True, text=True, check=True, timeout=120
    ).stdout.split()


@pytest.mark.parametrize(
    "module",
    [
        "competitions.scoring.metrics.regression",
        "competitions.tables.columns",
        "storage.datasets.materialise",
        "grading.statistics.seeds",
        "flows.commands.endings",
        "benchmarks.data",
    ],
)
def test_it_is_told_in_time(module: str) -> None:
    assert told(module) == ["20"]


def test_a_user_who_says_otherwise_is_heeded() -> None:
    assert told("competitions.tables.columns", OPENBLAS_THREAD_TIMEOUT="28") == ["28"]
