"""Time 24 pieces of work of realistic size against the published benchmark: `python -m benchmarks.published`.

A case prepares one competition from a generated download, or grades a generated submission, in a new process that
imports first and times only the work; for grade-100 one process grades a hundred. Times are told in units: one unit is
what a fixed piece of work of pandas, zlib and JSON takes on this machine, measured before and after each case.
targets.json holds, in units, what the published benchmark takes (`published`) and what is wanted (`target`), the memory
in MB, and the scores, which must be equal. Printed per case: seconds, peak memory, units, and the ratio to the time of
the published benchmark; at the end, the limits of this machine. The exit code is 1 if a case misses its target, fails,
or scores differently. Use an idle machine with two cores, and a disk with 10 GB of room for each repetition and one
more: what cases write is removed at the end.
"""

from __future__ import annotations

import argparse
import cProfile
import fnmatch
import importlib
import io
import json
import os
import pstats
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil

from benchmarks.limits import limits
from benchmarks.published import CASES, VERSION, Case, grade_cases, prepare_cases

TARGETS: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "targets.json").read_text())


def unit() -> float:
    """Seconds that the fixed piece of work takes, the quicker of two."""
    rng = np.random.default_rng(0)
    names = [f"id_{i:07d}" for i in range(150_000)]
    frame = pd.DataFrame({"a": rng.integers(0, 10**6, 150_000), "b": rng.random(150_000), "c": names})
    packed = zlib.compress(rng.integers(0, 40, 8_000_000, dtype=np.uint8).tobytes(), 1)
    text = json.dumps([{"id": i, "v": [i, i + 1, str(i)]} for i in range(60_000)])
    times = []
    for _ in range(2):
        start = time.perf_counter()
        pd.read_csv(io.StringIO(frame.to_csv(index=False))).sort_values("c")
        zlib.decompress(packed)
        json.loads(text)
        times.append(time.perf_counter() - start)
    return min(times)


def family_rss(root: int) -> int:
    """Resident bytes of a process and its descendants, as the memory in targets.json was counted.

    Pages that processes share count in each of them, other than in `benchmarks.measure`, whose count takes longer.
    """
    total = 0
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(root)
        for relative in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                total += relative.memory_info().rss
    return total


def child(spec: dict[str, Any]) -> None:
    """In the measured process: import, then time the work and write what came out."""
    from competitions import registry
    from storage.datasets import prepare

    competition = registry.get(spec["competition"])
    inputs, run = Path(spec["inputs"]), Path(spec["run"])
    if spec["kind"] == "grade":
        shutil.copytree(inputs / "prepared", run / "prepared", copy_function=os.link)

    def work() -> list[float]:
        if spec["kind"] == "prepare":
            prepare(competition.id, inputs / "raw.zip", run / "prepared")
            return []
        return [competition.grade(path, run / "prepared") for path in sorted((inputs / "submissions").iterdir())]

    for name in spec["modules"]:
        with suppress(Exception):
            importlib.import_module(name)
    profiler = cProfile.Profile() if spec["profile"] else None
    start = time.perf_counter()
    scores = profiler.runcall(work) if profiler else work()
    seconds = time.perf_counter() - start
    if profiler:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)
    modules = [name for name, module in sys.modules.items() if getattr(module, "__spec__", None) and name[:2] != "__"]
    Path(spec["result"]).write_text(json.dumps({"seconds": seconds, "scores": scores, "modules": modules}))


def make(spec: dict[str, Any]) -> None:
    """Generate a case's inputs, the same on every machine."""
    out = Path(spec["run"])
    rng = np.random.default_rng([zlib.crc32(f"{spec['kind']}-{spec['competition']}".encode())])
    if spec["kind"] == "prepare":
        prepare_cases.make(spec["competition"], out / "raw.zip", rng, 1.0)
    else:
        grade_cases.make(spec["competition"], out, rng, 1.0)


def run(spec: dict[str, Any], show: bool = False) -> dict[str, Any]:
    """Run `spec` in a process of its own; what it measured, with its peak memory."""
    folder = Path(spec["run"])
    folder.mkdir(parents=True)
    spec["result"] = str(folder / "result.json")
    environment = {"TMPDIR": str(folder), "XDG_CACHE_HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    os.sync()
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.published", "--child", json.dumps(spec)],
        env={**os.environ, **environment},
        start_new_session=True,
        stdout=None if show else subprocess.DEVNULL,
    )
    peak = 0
    while process.poll() is None:
        peak = max(peak, family_rss(process.pid))
        time.sleep(0.03)
    if process.returncode:
        raise RuntimeError(f"exit code {process.returncode}")
    return {**json.loads(Path(spec["result"]).read_text()), "peak": peak} if spec["what"] == "work" else {}


def measure(case: Case, args: argparse.Namespace) -> dict[str, Any]:
    """Seconds and units (the medians), peak memory in bytes and scores of a case."""
    base = {"kind": case.kind, "competition": case.competition, "profile": False, "modules": []}
    inputs = args.work / "inputs" / f"{case.name}-v{VERSION}"
    if not (inputs / "complete").exists():
        shutil.rmtree(inputs, ignore_errors=True)
        run({**base, "what": "make", "run": str(inputs)})
        (inputs / "complete").touch()
    runs = (str(args.runs / f"{case.name}-{number}") for number in count())
    spec = {**base, "what": "work", "inputs": str(inputs)}
    spec["modules"] = run({**spec, "run": next(runs)})["modules"]
    units, results = [unit()], []
    for _ in range(args.repeat):
        results.append(run({**spec, "run": next(runs)}))
        units.append(unit())
    if args.profile:
        run({**spec, "run": next(runs), "profile": True}, show=True)
    seconds = statistics.median(result["seconds"] for result in results)
    peak = max(result["peak"] for result in results)
    units_of_case = seconds / statistics.median(units)
    return {"seconds": seconds, "units": units_of_case, "peak": peak, "scores": results[-1]["scores"]}


def line(case: Case, result: dict[str, Any]) -> tuple[str, bool]:
    """What is printed of a case, and whether it is within its target and has the wanted scores."""
    target = TARGETS[case.name]
    expected_scores, scores = target["scores"], result["scores"]
    same_scores = len(expected_scores) <= len(scores) and all(
        abs(a - b) <= 1e-9 * max(1, abs(a)) for a, b in zip(expected_scores, scores, strict=False)
    )
    within = result["units"] <= target["target"] and result["peak"] <= target["peak_mb"] * 1e6
    ratio, target_ratio = target["published"] / result["units"], target["published"] / target["target"]
    text = (
        f"{case.name:60} {result['seconds']:7.2f} s {result['peak'] / 1e6:6.0f} MB  {result['units']:7.2f} units  "
        f"{ratio:6.2f} x published (target {target_ratio:.3g} x, {target['peak_mb']} MB)"
    )
    return text + ("" if within else "  MISSED") + ("" if same_scores else "  OTHER SCORE"), within and same_scores


def main() -> int:
    """Measure the chosen cases; returns 1 if one misses its target, fails, or scores differently."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="names of cases or competitions; * is allowed")
    parser.add_argument("--repeat", type=int, default=3, help="times that each case is run (default: %(default)s)")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "mlebench-published")
    parser.add_argument("--profile", action="store_true", help="print a profile of each case")
    parser.add_argument("--list", action="store_true", help="print the cases and their sizes")
    args = parser.parse_args()
    cases = [
        case
        for case in CASES
        if not args.cases or any(fnmatch.fnmatch(name, p) for name in (case.name, case.competition) for p in args.cases)
    ]
    if args.list:
        for case in cases:
            print(f"{case.name:60} {case.size}")
        return 0
    met_count = 0
    args.work.mkdir(parents=True, exist_ok=True)
    args.runs = Path(tempfile.mkdtemp(prefix="runs-", dir=args.work))
    try:
        for case in cases:
            try:
                text, is_met = line(case, measure(case, args))
            except RuntimeError as error:
                text, is_met = f"{case.name:60} FAILED {error}", False
            met_count += is_met
            print(text, flush=True)
    finally:  # and not between cases: ext4 is slow at creating files beside removed ones
        for folder in args.work.glob("runs-*"):  # of runs that were killed, too
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{met_count} of {len(cases)} within target")
    print("this machine: " + ", ".join(f"{name} {value:,.0f}" for name, value in limits(args.work).items()))
    return 0 if met_count == len(cases) else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        given = json.loads(sys.argv[2])
        make(given) if given["what"] == "make" else child(given)
        sys.exit(0)
    sys.exit(main())
