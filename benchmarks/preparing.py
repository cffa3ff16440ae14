"""Cases a to d: preparing, against the straightforward way; the files made must be equal."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import baseline, competition, data
from benchmarks.folders import fresh
from benchmarks.measure import Case, compare
from storage.datasets.cluster import DaskExecutor
from storage.datasets.job import Job
from storage.datasets.materialise import materialise


class Different(Exception):
    """The two ways made different files: their times mean nothing."""


def cases(names: list[str], work: Path, full: bool, address: str) -> Iterator[Case]:
    """Run the named cases below `work` on the Dask scheduler at `address`."""
    pictures = fresh("pictures-", work) / "pictures.zip"
    if {"a", "b"} & set(names):
        size = data.pictures_in_a_nested_zip(pictures, 20_000)
        if "a" in names:
            yield _case(
                "a", "20,000 pictures of a nested zip into two directories", 6, "bench-pictures", pictures,
                lambda out: baseline.pictures(pictures, out, zipped=False), work, size, address, 5,
            )  # fmt: skip
        if "b" in names:
            yield _case(
                "b", "the same into two zips", 8, "bench-zips", pictures,
                lambda out: baseline.pictures(pictures, out, zipped=True), work, size, address, 1,
            )  # fmt: skip
    if "c" in names:
        table = fresh("table-", work) / "table.zip"
        size = data.large_table(table, 10**9 if full else 15 * 10**7)
        yield _case(
            "c", f"a table of {size / 1e6:.0f} MB", 1.8, "bench-table", table,
            lambda out: baseline.table(table, out), work, size, address, 1 if full else 2,
        )  # fmt: skip
    if "d" in names:
        folders = fresh("folders-", work)
        size = data.folders_of_files(folders, 2_000, 10 if full else 5)
        yield _case(
            "d", "2,000 directories copied as trees", 10, "bench-folders", folders,
            lambda out: baseline.folders(folders, out), work, size, address, 1 if full else 2,
        )  # fmt: skip


def _case(
    name: str,
    about: str,
    target: float,
    competition_id: str,
    raw: Path,
    straightforward: Callable[[Path], dict[str, str]],
    work: Path,
    size: int,
    address: str,
    times: int,
) -> Case:
    """Measure one case: both ways `times` times, in turns, each run into a folder of its own."""
    folder = competition.make(work / "competitions", competition_id)
    used: dict[str, Path] = {}

    def out(kind: str) -> Path:
        used[kind] = fresh(f"{name}-{kind}-", work)
        return used[kind]

    def prepare() -> int:
        job = Job(competition_id, str(raw), str(out("ours")), folder=str(folder), key="k")
        manifest = materialise(job, executor=DaskExecutor(address))
        return len(manifest)

    def straight() -> dict[str, str]:
        return straightforward(out("theirs"))

    own, plain = compare(prepare, straight, times)
    _check(used["ours"], used["theirs"])
    return Case(name, about, plain.seconds / own.seconds, target, own, plain, size, own.value)


def _check(ours: Path, theirs: Path) -> None:
    """The same files with the same bytes; of zips the same members with the same bytes."""
    found, expected = (
        {p.relative_to(root).as_posix(): p for part in ("public", "private") for p in (root / part).rglob("*.*")}
        for root in (ours, theirs)
    )
    found.pop("public/description.md")
    if set(found) != set(expected):
        raise Different(f"{len(set(found) ^ set(expected))} files are in one only")
    for path, mine in found.items():
        if _content(mine) != _content(expected[path]):
            raise Different(f"{path} differs")


def _content(path: Path) -> dict[str, int] | bytes:
    if path.suffix != ".zip":
        with path.open("rb") as file:
            return hashlib.file_digest(file, "blake2b").digest()
    with zipfile.ZipFile(path) as archive:
        if archive.testzip():
            raise Different(f"{path} is damaged")
        return {info.filename: info.CRC for info in archive.infolist() if not info.is_dir()}
