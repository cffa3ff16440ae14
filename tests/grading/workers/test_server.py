"""The process with the answers, of which every grading is a fork."""

from __future__ import annotations

import dataclasses
import gc
import threading
from pathlib import Path
from typing import Any

import pytest

from competitions import registry
from competitions.competition import Competition
from competitions.tables.threads import table_threads
from grading.workers.limits import Bounds
from grading.workers.server import Server


def test_it_has_no_threads_that_read_tables_when_it_forks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def answers(self: Competition, prepared: Path, kept: Path | None = None) -> Any:
        return table_threads().submit(int, "7").result()

    monkeypatch.setattr(Competition, "answers", answers)
    spec = {
        "folder": str(registry.get("digits").folder),
        "edition": "v1",
        "bounds": dataclasses.asdict(Bounds(1 << 20, 10, 100, 1 << 30, 10.0, 10.0)),
        "workers": 1,
        "validating": False,
        "kept": None,
        "prepared": str(tmp_path),
    }
    try:
        assert Server(spec, 0, 1).answers == 7
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("tables")]
    finally:
        gc.unfreeze()
