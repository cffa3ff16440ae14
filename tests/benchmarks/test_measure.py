"""The measurements: alternating, the quickest counts, memory is the highest; results are files that were compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import measure, preparing
from benchmarks.folders import fresh
from benchmarks.measure import Sample, compare, quickest


def test_the_quickest_run_counts() -> None:
    quick = Sample(1.0, 0.5, 0.0, "quick")
    assert quickest([Sample(2.0, 1.0, 0.0, "slow"), quick]) == quick


def test_both_ways_run_in_turns_after_a_run_that_is_not_timed() -> None:
    order: list[str] = []
    own, theirs = compare(lambda: order.append("ours"), lambda: order.append("theirs"), 2)
    assert order == ["ours"] + ["theirs", "ours"] * 2
    assert own.peak_mb > 0
    assert min(own.seconds, theirs.seconds) > 0


def test_each_folder_is_new(tmp_path: Path) -> None:
    first, second = fresh("a-", tmp_path), fresh("a-", tmp_path)
    assert first != second
    assert [*first.iterdir(), *second.iterdir()] == []


def test_other_bytes_make_the_times_worthless(tmp_path: Path) -> None:
    for name, content in (("ours", "1"), ("theirs", "2")):
        (tmp_path / name / "public").mkdir(parents=True)
        (tmp_path / name / "public" / "a.csv").write_text(content)
    (tmp_path / "ours" / "public" / "description.md").write_text("")
    with pytest.raises(measure.DifferentResult, match="differs"):
        preparing._check(tmp_path / "ours", tmp_path / "theirs")
