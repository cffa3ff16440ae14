"""The comparison with the published benchmark: each case has a target, and inputs that are valid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.published import CASES, Case, grade_cases, prepare_cases
from benchmarks.published.__main__ import TARGETS, line
from competitions import registry
from storage.datasets import prepare

CASE = Case("grade", "bms-molecular-translation", "484,838 InChI")


def test_each_case_has_a_target() -> None:
    assert [case.name for case in CASES] == list(TARGETS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_small_input_is_valid(case: Case, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    if case.kind == "prepare":
        prepare_cases.make(case.competition, tmp_path / "raw.zip", rng, 0.01)
        manifest = prepare(case.competition, tmp_path / "raw.zip", tmp_path / "prepared")
        assert {"public", "private"} == set(manifest["part"])
    else:
        grade_cases.make(case.competition, tmp_path, rng, 0.02)
        for path in (tmp_path / "submissions").iterdir():
            assert np.isfinite(registry.get(case.competition).grade(path, tmp_path / "prepared"))


@pytest.mark.parametrize(
    ("units", "peak", "score", "told"),
    [(0.5, 1e8, 0.0, ""), (9, 1e8, 0.0, "  MISSED"), (0.5, 1e9, 0.0, "  MISSED"), (0.5, 1e8, 1e-6, "  OTHER SCORE")],
)
def test_a_missed_target_and_another_score_are_told(units: float, peak: float, score: float, told: str) -> None:
    scores = [each + score for each in TARGETS[CASE.name]["scores"]]
    text, good = line(CASE, {"seconds": 1.0, "units": units, "peak": peak, "scores": scores})
    assert text.endswith("MB)" + told)
    assert good == (not told)
