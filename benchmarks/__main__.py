"""Performance measurements, each compared with a baseline in the same run. SCALE=full uses larger data."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from benchmarks.limits import limits
from benchmarks.measure import Case
from storage.datasets.cluster import cluster

_OUT = Path("build") / "bench"  # below the working directory, because the folder of the package may be read-only
_CORES = 2  # the targets apply to two cores


def main() -> int:
    """Run the cases; returns 1 if one misses its target."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "cases",
        nargs="*",
        metavar="CASE",
        help="a to h (default: a to g; h needs radosgw)",
    )
    parser.add_argument("--out", type=Path, default=_OUT, help="directory for results.parquet (default: %(default)s)")
    parser.add_argument("--work", type=Path, default=None, help="directory for generated data (default: --out)")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.cases) - set("abcdefgh"))
    if unknown:
        parser.error(f"unknown case {', '.join(unknown)}; cases are a to h")
    names = arguments.cases or list("abcdefg")
    full = os.environ.get("SCALE") == "full"
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.work or arguments.out).mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="work-", dir=arguments.work or arguments.out))
    results: list[Case] = []
    try:
        machine_limits = limits(work)
        for case in _run(names, work, full):
            print(case.line, flush=True)
            _print(case.details)
            results.append(case)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    _report(results, machine_limits, arguments.out / "results.parquet", full)
    return 0 if all(_met(case) for case in results) else 1


def _run(names: list[str], work: Path, full: bool) -> Iterator[Case]:
    if set("abcd") & set(names):
        from benchmarks import preparing

        start = time.perf_counter()
        with cluster(workers=_CORES) as address:
            _print(f"local cluster ready after {time.perf_counter() - start:.1f} s (once per run, not measured)")
            yield from preparing.cases(names, work, full, address)
    if "e" in names:
        from benchmarks import grading

        yield grading.case(work, full)
    if "f" in names:
        from benchmarks import metrics

        result, lines = metrics.case(full)
        yield result
        for line in lines:
            _print(line)
    if "g" in names:
        from benchmarks import rerun

        yield rerun.case(work)
    if "h" in names:
        from benchmarks import object_store

        yield from object_store.cases(work, full)


def _met(case: Case) -> bool:
    return case.ratio < case.target if case.baseline is None else case.ratio >= case.target


def _report(results: list[Case], machine_limits: dict[str, float], path: Path, full: bool) -> None:
    rows = [
        {
            "case": case.name,
            "about": case.about,
            "scale": "full" if full else "quick",
            "ratio": case.ratio,
            "target": case.target,
            "met": _met(case),
            "seconds": case.ours.seconds,
            "baseline_seconds": case.baseline.seconds if case.baseline else None,
            "cpu_seconds": case.ours.cpu,
            "baseline_cpu_seconds": case.baseline.cpu if case.baseline else None,
            "mb_per_second": case.bytes / 1e6 / case.ours.seconds,
            "files_per_second": case.files / case.ours.seconds,
            "peak_mb": case.ours.peak_mb,
        }
        for case in results
    ]
    table = pd.DataFrame(rows)
    _print(table.drop(columns=["scale"]).to_string(index=False, float_format="{:.2f}".format, na_rep=""))
    _print("limits of this machine: " + ", ".join(f"{name} {value:,.0f}" for name, value in machine_limits.items()))
    table.assign(**machine_limits).to_parquet(path, index=False)
    _print(f"results in {path}")


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
