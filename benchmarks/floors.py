"""The minimum time to create the files of a prepared dataset on this machine: `python -m benchmarks.floors`.

A download is prepared, and then its files are created again with the least possible work: two processes read members
of the download, inflate and write them, without checks, hashes or records. Files that prepare.py computed, and
archives, are copied. The difference is the time that an optimal program could save.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import zipfile
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, NamedTuple

import pyarrow.parquet as pq
from isal import isal_zlib

from benchmarks.folders import fresh
from competitions.preparing.archives.zips import ZipContainer
from competitions.preparing.download import Download
from storage.datasets import prepare
from storage.datasets.commit import MANIFEST

_BLOCK = 1 << 20
_CHUNK_FILES = 100  # files that a process takes at a time
_TOKEN_BYTES = 4  # bytes of the number of a chunk
_IMPORTED = (
    "pandas",
    "pyarrow.csv",
    "sklearn.model_selection",
    "storage.datasets.materialise",
)  # imported before the measurement


class Floor(NamedTuple):
    """Seconds of preparing, and of creating the same files; the number of files and bytes.

    CPU seconds are those of all processes. They vary less if other processes use the machine.
    """

    prepared: float
    prepared_cpu: float
    seconds: float
    cpu: float
    files: int
    bytes: int


class _File(NamedTuple):
    """A file to create: the open file that contains its bytes, their offset and size, and whether they are deflated."""

    path: str
    descriptor: int
    offset: int
    compressed: int
    size: int
    deflated: bool


def floor(competition_id: str, raw: Path, work: Path) -> Floor:
    """Prepare `raw`, a local zip archive, and create its files again, both in new folders below `work`."""
    for name in _IMPORTED:
        import_module(name)
    work.mkdir(parents=True, exist_ok=True)
    folder = fresh("floors-", work)
    begin, begin_cpu = time.perf_counter(), _cpu()
    prepare(competition_id, raw, folder / "prepared")
    prepared, prepared_cpu = time.perf_counter() - begin, _cpu() - begin_cpu
    rows = pq.read_table(folder / "prepared" / MANIFEST).to_pylist()
    opened: list[IO[bytes]] = []
    nested = {row["source"].rpartition("!/")[0] for row in rows}
    begin, begin_cpu = time.perf_counter(), _cpu()
    archives = _archives(raw, nested, opened)
    inflating, inflating_cpu = time.perf_counter() - begin, _cpu() - begin_cpu
    files = list(_files(rows, folder, raw, archives, opened))  # planning is not timed
    begin, begin_cpu = time.perf_counter(), _cpu()
    _create(files, folder / "floor")
    seconds, cpu = inflating + time.perf_counter() - begin, inflating_cpu + _cpu() - begin_cpu
    for file in opened:
        file.close()
    return Floor(prepared, prepared_cpu, seconds, cpu, len(files), sum(row["bytes"] for row in rows))


def _cpu() -> float:
    """CPU seconds of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def _archives(raw: Path, names: Iterable[str], opened: list[IO[bytes]]) -> dict[str, int]:
    """File descriptors of nested archives, which are inflated to scratch files. Deeper archives are not supported."""
    descriptors = {}
    with zipfile.ZipFile(raw) as download:
        for name in filter(None, names):
            info = download.getinfo(name)
            scratch = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  # closed when all is done
            opened.append(scratch)
            with raw.open("rb") as file:
                container = ZipContainer(file, raw.name)
                file.seek(container.start(name))
                inflater = isal_zlib.decompressobj(-15) if info.compress_type else None
                remaining = info.compress_size
                while remaining and (block := file.read(min(remaining, _BLOCK >> 2))):
                    remaining -= len(block)
                    scratch.write(inflater.decompress(block) if inflater else block)
            descriptors[name] = scratch.fileno()
    return descriptors


def _files(
    rows: list[dict[str, str]], folder: Path, raw: Path, archives: dict[str, int], opened: list[IO[bytes]]
) -> Iterator[_File]:
    download = Download.open(str(raw))
    top = raw.open("rb")
    opened.append(top)
    archives[""] = top.fileno()

    @cache
    def container(archive: str) -> ZipContainer:
        archive_container = download.view(archive).container
        assert isinstance(archive_container, ZipContainer)
        return archive_container

    for row in rows:
        path = f"{row['part']}/{row['path']}"
        archive, _, name = row["source"].rpartition("!/")
        if archive in archives and name in container(archive).sizes:
            entry = container(archive).entry(name)
            location = archives[archive], container(archive).start(name), entry.compressed, entry.size
            yield _File(path, *location, entry.method == zipfile.ZIP_DEFLATED)
        else:
            content = (folder / "prepared" / path).open("rb")
            opened.append(content)
            size = os.fstat(content.fileno()).st_size
            yield _File(path, content.fileno(), 0, size, size, False)


def _create(files: list[_File], out: Path) -> None:
    """Create the files with two processes, which take the numbers of chunks from a file with a common offset."""
    ordered = sorted(files, key=lambda file: (file.compressed < _BLOCK, file.descriptor, file.offset))
    chunks: list[list[_File]] = [[file] for file in ordered if file.compressed >= _BLOCK]
    small_files = ordered[len(chunks) :]
    chunks += [small_files[start : start + _CHUNK_FILES] for start in range(0, len(small_files), _CHUNK_FILES)]
    numbers = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  # a pipe would not hold any number of them
    numbers.write(b"".join(number.to_bytes(_TOKEN_BYTES, "big") for number in range(len(chunks))))
    numbers.seek(0)
    tokens = numbers.fileno()
    child = os.fork()
    created_folders: set[str] = set()
    while token := os.read(tokens, _TOKEN_BYTES):
        for file in chunks[int.from_bytes(token, "big")]:
            _create_one(file, f"{out}/{file.path}", created_folders)
    if not child:
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        raise OSError("the second process failed")
    numbers.close()


def _create_one(file: _File, path: str, created_folders: set[str]) -> None:
    folder = path[: path.rindex("/")]
    if folder not in created_folders:
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        created_folders.add(folder)
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    if file.deflated:
        content = os.pread(file.descriptor, file.compressed, file.offset)
        os.write(descriptor, isal_zlib.decompress(content, -15, max(file.size, 1)))
    else:
        for start in range(0, file.size, _BLOCK):
            size = min(_BLOCK, file.size - start)
            os.write(descriptor, os.pread(file.descriptor, size, file.offset + start))
    os.close(descriptor)


def main() -> None:
    """Print a line for each download."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.floors", description=__doc__)
    parser.add_argument("downloads", nargs="+", metavar="ID=ZIP", help="a competition and its download")
    parser.add_argument("--work", type=Path, required=True, help="directory for prepared files, which are left there")
    arguments = parser.parse_args()
    for download in arguments.downloads:
        competition_id, _, raw = download.partition("=")
        times = floor(competition_id, Path(raw), arguments.work)
        print(
            f"{competition_id}: prepared in {times.prepared:.2f} s ({times.prepared_cpu:.2f} s CPU), of which creating "
            f"{times.files:,} files of {times.bytes / 1e6:,.0f} MB takes {times.seconds:.2f} s ({times.cpu:.2f} s CPU)"
        )


if __name__ == "__main__":
    main()
