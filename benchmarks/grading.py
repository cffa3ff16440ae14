"""Case e: 100 submissions of one competition, compared with one process per submission that reads the answers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.measure import Case, DifferentResult, Sample, best, measure
from competitions import registry
from storage.dataset import Dataset
from storage.datasets.commit import MARKER
from storage.datasets.current import make_current
from storage.store import Store

_ID = "iwildcam-2020-fgvc7"
_ROWS = 60_000
_SUBMISSIONS = 100
_BASELINE_SUBMISSIONS = 8  # graded by the baseline at the quick scale; its time is extrapolated


def case(work: Path, full: bool) -> Case:
    """`mlebench grade` with all submissions, compared with `mlebench grade-sample` for one after the other."""
    store, submissions = work / "grading-store", _submissions(work / "submissions")
    _prepared(store)
    items = work / "items.jsonl"
    items.write_text(
        "".join(json.dumps({"competition_id": _ID, "submission_path": str(path)}) + "\n" for path in submissions)
    )
    ours = best(lambda: _together(items, work / "reports", store), 1)
    measured = submissions if full else submissions[:_BASELINE_SUBMISSIONS]
    baseline_run = measure(lambda: [_alone(path, store) for path in measured])
    if ours.value[: len(measured)] != baseline_run.value:
        raise DifferentResult("grade and grade-sample disagree")
    times = len(submissions) / len(measured)
    baseline = Sample(baseline_run.seconds * times, baseline_run.cpu * times, baseline_run.peak_mb)
    about = f"{len(submissions)} submissions of {_ROWS:,} rows (baseline: {len(measured)} of them measured)"
    size = sum(path.stat().st_size for path in submissions)
    return Case("e", about, baseline.seconds / ours.seconds, 5, ours, baseline, size, len(submissions))


def _prepared(store: Path) -> None:
    facts = registry.get(_ID).facts
    dataset = Dataset("v1", _ID, "k")
    folder = store / "prepared" / "v1" / _ID / "k"
    for path in (facts.files.answers, facts.files.sample_submission, facts.files.gold_submission):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        _table(0).to_csv(folder / path, index=False)
    (folder / MARKER).write_text(json.dumps({"key": dataset.key}))
    make_current(Store(str(store)), dataset)


def _submissions(folder: Path) -> list[Path]:
    folder.mkdir()
    paths = [folder / f"{number:03d}.csv" for number in range(_SUBMISSIONS)]
    for seed, path in enumerate(paths, 1):
        _table(seed).to_csv(path, index=False)
    return paths


def _table(seed: int) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    ids = [f"{number:08x}-21bc-11ea-a13a-137349068a90" for number in range(_ROWS)]
    return pd.DataFrame({"Id": ids, "Category": generator.integers(0, 200, _ROWS)})


def _together(items: Path, out: Path, store: Path) -> list[float]:
    text = _mlebench("grade", "--submission", str(items), "--output-dir", str(out), "--store", str(store))
    report: dict[str, Any] = json.loads(Path(text.strip().splitlines()[-1]).read_text())
    return [competition_report["score"] for competition_report in report["competition_reports"]]


def _alone(path: Path, store: Path) -> float:
    return float(json.loads(_mlebench("grade-sample", str(path), _ID, "--store", str(store)))["score"])


def _mlebench(*arguments: str) -> str:
    command = [sys.executable, "-m", "flows.cli", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
