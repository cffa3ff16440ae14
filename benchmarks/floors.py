"""How long the files of a prepared dataset take on this machine, whatever the program: `python -m benchmarks.floors`.

A download is prepared, and then its files are created once more by as little as does the same for the disk: two
processes read members of the download, inflate and write them, without a check, a hash or a record of anything. What
prepare.py computed, and archives, are written from the bytes that they have. The difference is what is left to gain.
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
_CHUNK = 100  # files that a process takes at a time
_TOKEN = 4  # bytes of the number of a chunk
_IMPORTED = ("pandas", "pyarrow.csv", "sklearn.model_selection", "storage.datasets.materialise")  # before time is taken


class Floor(NamedTuple):
    """Seconds of preparing, and of creating the same files; how many files and bytes these are.

    CPU seconds are those of all processes, which differ less where others use the machine, too.
    """

    prepared: float
    prepared_cpu: float
    seconds: float
    cpu: float
    files: int
    bytes: int


class _File(NamedTuple):
    """A file to create: where its compressed bytes are in which open file, or the file with its bytes."""

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
    files = list(_files(rows, folder, raw, archives, opened))  # the plan is no part of the work
    begin, begin_cpu = time.perf_counter(), _cpu()
    _create(files, folder / "floor")
    seconds, cpu = inflating + time.perf_counter() - begin, inflating_cpu + _cpu() - begin_cpu
    for file in opened:
        file.close()
    return Floor(prepared, prepared_cpu, seconds, cpu, len(files), sum(row["bytes"] for row in rows))


def _cpu() -> float:
    """CPU seconds of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def _archives(raw: Path, wanted: Iterable[str], opened: list[IO[bytes]]) -> dict[str, int]:
    """File descriptors of nested archives, which are inflated to scratch files. Deeper ones are not supported."""
    found = {}
    with zipfile.ZipFile(raw) as outer:
        for name in filter(None, wanted):
            info = outer.getinfo(name)
            scratch = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  # closed when all is done
            opened.append(scratch)
            with raw.open("rb") as file:
                container = ZipContainer(file, raw.name)
                file.seek(container.start(name))
                inflater = isal_zlib.decompressobj(-15) if info.compress_type else None
                left = info.compress_size
                while left and (block := file.read(min(left, _BLOCK >> 2))):
                    left -= len(block)
                    scratch.write(inflater.decompress(block) if inflater else block)
            found[name] = scratch.fileno()
    return found


def _files(
    rows: list[dict[str, str]], folder: Path, raw: Path, archives: dict[str, int], opened: list[IO[bytes]]
) -> Iterator[_File]:
    download = Download.open(str(raw))
    top = raw.open("rb")
    opened.append(top)
    archives[""] = top.fileno()

    @cache
    def container(archive: str) -> ZipContainer:
        found = download.view(archive).container
        assert isinstance(found, ZipContainer)
        return found

    for row in rows:
        path = f"{row['part']}/{row['path']}"
        archive, _, name = row["source"].rpartition("!/")
        if archive in archives and name in container(archive).sizes:
            entry = container(archive).entry(name)
            place = archives[archive], container(archive).start(name), entry.compressed, entry.size
            yield _File(path, *place, entry.method == zipfile.ZIP_DEFLATED)
        else:
            content = (folder / "prepared" / path).open("rb")
            opened.append(content)
            size = os.fstat(content.fileno()).st_size
            yield _File(path, content.fileno(), 0, size, size, False)


def _create(files: list[_File], out: Path) -> None:
    """Create the files with two processes, which take the numbers of chunks from a file that both read on."""
    ordered = sorted(files, key=lambda file: (file.compressed < _BLOCK, file.descriptor, file.offset))
    chunks: list[list[_File]] = [[file] for file in ordered if file.compressed >= _BLOCK]
    small = ordered[len(chunks) :]
    chunks += [small[start : start + _CHUNK] for start in range(0, len(small), _CHUNK)]
    numbers = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  # a pipe would not hold any number of them
    numbers.write(b"".join(number.to_bytes(_TOKEN, "big") for number in range(len(chunks))))
    numbers.seek(0)
    tokens = numbers.fileno()
    child = os.fork()
    made: set[str] = set()
    while token := os.read(tokens, _TOKEN):
        for file in chunks[int.from_bytes(token, "big")]:
            _create_one(file, f"{out}/{file.path}", made)
    if not child:
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        raise OSError("the second process failed")
    numbers.close()


def _create_one(file: _File, path: str, made: set[str]) -> None:
    folder = path[: path.rindex("/")]
    if folder not in made:
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        made.add(folder)
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
    for each in arguments.downloads:
        competition_id, _, raw = each.partition("=")
        found = floor(competition_id, Path(raw), arguments.work)
        print(
            f"{competition_id}: prepared in {found.prepared:.2f} s ({found.prepared_cpu:.2f} s CPU), of which creating "
            f"{found.files:,} files of {found.bytes / 1e6:,.0f} MB takes {found.seconds:.2f} s ({found.cpu:.2f} s CPU)"
        )


if __name__ == "__main__":
    main()
