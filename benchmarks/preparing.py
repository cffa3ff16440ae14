"""Cases a to d: preparing a dataset, compared with the baseline; both must make equal files."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import baseline, competition, data
from benchmarks.folders import fresh
from benchmarks.measure import Case, DifferentResult, compare
from storage.datasets.cluster import DaskExecutor
from storage.datasets.job import Job
from storage.datasets.materialise import materialise


@dataclass(frozen=True)
class Measurement:
    """One case: a generated download, a competition that prepares it, and the baseline that does the same."""

    name: str
    about: str
    target: float
    competition_id: str
    raw: Path
    size: int
    """Bytes of the download's content."""
    straightforward: Callable[[Path], dict[str, str]]
    times: int
    """Number of runs of each implementation."""


def cases(names: list[str], work: Path, full: bool, address: str) -> Iterator[Case]:
    """Run the named cases below `work` on the Dask scheduler at `address`."""
    for measurement in _measurements(names, work, full):
        yield _measure(measurement, work, address)


def _measurements(names: list[str], work: Path, full: bool) -> Iterator[Measurement]:
    pictures = fresh("pictures-", work) / "pictures.zip"
    if {"a", "b"} & set(names):
        size = data.pictures_in_a_nested_zip(pictures, 20_000)
        if "a" in names:
            yield Measurement(
                "a", "20,000 pictures of a nested zip into two directories", 3, "bench-pictures", pictures, size,
                lambda out: baseline.pictures(pictures, out, zipped=False), times=5,
            )  # fmt: skip
        if "b" in names:
            yield Measurement(
                "b", "the same into two zips", 4, "bench-zips", pictures, size,
                lambda out: baseline.pictures(pictures, out, zipped=True), times=1,
            )  # fmt: skip
    if "c" in names:
        table = fresh("table-", work) / "table.zip"
        size = data.large_table(table, 10**9 if full else 15 * 10**7)
        yield Measurement(
            "c", f"a table of {size / 1e6:.0f} MB", 1.8, "bench-table", table, size,
            lambda out: baseline.table(table, out), times=1 if full else 2,
        )  # fmt: skip
    if "d" in names:
        folders = fresh("folders-", work)
        size = data.folders_of_files(folders, 2_000, 10 if full else 5)
        yield Measurement(
            "d", "2,000 directories copied as trees", 6, "bench-folders", folders, size,
            lambda out: baseline.folders(folders, out), times=1 if full else 2,
        )  # fmt: skip


def _measure(measurement: Measurement, work: Path, address: str) -> Case:
    """Run both implementations in turns, each time into a new folder, and compare the files that they made."""
    folder = competition.make(work / "competitions", measurement.competition_id)
    used: dict[str, Path] = {}

    def out(kind: str) -> Path:
        used[kind] = fresh(f"{measurement.name}-{kind}-", work)
        return used[kind]

    def prepare() -> int:
        job = Job(measurement.competition_id, str(measurement.raw), str(out("ours")), folder=str(folder), key="k")
        manifest = materialise(job, executor=DaskExecutor(address)).to_pandas()
        return len(manifest)

    def straight() -> dict[str, str]:
        return measurement.straightforward(out("theirs"))

    our_sample, baseline_sample = compare(prepare, straight, measurement.times)
    _check(used["ours"], used["theirs"])
    return Case(
        measurement.name,
        measurement.about,
        baseline_sample.seconds / our_sample.seconds,
        measurement.target,
        our_sample,
        baseline_sample,
        measurement.size,
        our_sample.value,
    )


def _check(ours: Path, theirs: Path) -> None:
    """Raise `DifferentResult` unless both made the same files with the same bytes; zips must have equal members."""
    our_files, baseline_files = (
        {p.relative_to(root).as_posix(): p for part in ("public", "private") for p in (root / part).rglob("*.*")}
        for root in (ours, theirs)
    )
    our_files.pop("public/description.md")
    if set(our_files) != set(baseline_files):
        raise DifferentResult(f"{len(set(our_files) ^ set(baseline_files))} files are in one only")
    for path, our_path in our_files.items():
        if _content(our_path) != _content(baseline_files[path]):
            raise DifferentResult(f"{path} differs")


def _content(path: Path) -> dict[str, int] | bytes:
    if path.suffix != ".zip":
        with path.open("rb") as file:
            return hashlib.file_digest(file, "blake2b").digest()
    with zipfile.ZipFile(path) as archive:
        if archive.testzip():
            raise DifferentResult(f"{path} is damaged")
        return {info.filename: info.CRC for info in archive.infolist() if not info.is_dir()}
