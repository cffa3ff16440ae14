"""Case h: splitting to and fetching from S3 when each request takes 40 ms longer, against one file at a time.

The baseline is how it was done before: files above 1 MiB one after the other, smaller ones in batches of 16, read and
uploaded by turns; and 16 fetches at a time that ask for the size first, over ten connections. The server's disk has
8 GiB, so the files of 2 MiB are a sample; two numbers of them show that the time per file does not depend on it.

Only waiting can be saved. Server, proxy and client share two cores here, and a file of 2 MiB takes some 30 ms of them
when it is written (half of it in the server) and 17 ms when it is read, so with 40 ms of waiting, no way of splitting
could be more than five times as fast as one file at a time, and the old fetch had ten requests under way already.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.measure import Case, measure
from competitions import registry
from competitions.preparing.declaration import Preparation
from competitions.preparing.download import Download
from storage.datasets.execute import execute
from storage.datasets.local_copy import fetch_all
from storage.datasets.plan import Copies, group_copies, in_storage_order, split_copies
from storage.remote import set_fsspec_defaults
from storage.store import Store
from storage.writers import BLOCK_BYTES, Destination, HashingWriter

DELAY = 0.04  # seconds added to each request
_SETS = {
    False: ((2_000, 64 << 10), (200, 2 << 20), (400, 2 << 20)),
    True: ((20_000, 64 << 10), (500, 2 << 20), (2_000, 2 << 20)),
}
TARGET = 1.25


def cases(work: Path, full: bool) -> Iterator[Case]:
    """A split and a fetch of many small files and of files of 2 MiB. Needs the programs of `tests.s3.radosgw`."""
    with _server(Path(tempfile.mkdtemp(dir=work))) as environment:
        os.environ.update(environment)
        set_fsspec_defaults()
        import s3fs

        s3fs.S3FileSystem(skip_instance_cache=True).mkdir("bench")
        for count, size in _SETS[full]:
            yield from _cases(work, f"{count:,} files of {size >> 10:,} KiB", count, size)


@contextlib.contextmanager
def _server(folder: Path) -> Iterator[dict[str, str]]:
    """A server behind a slow proxy, in another process, because the proxy would share Python's lock with the client."""
    our_end, server_end = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(folder, server_end))
    process.start()
    try:
        environment: dict[str, str] = our_end.recv()
        yield environment
    finally:
        our_end.send("end")
        process.join()


def _serve(folder: Path, end: Any) -> None:
    from tests.s3.faults import FaultProxy
    from tests.s3.radosgw import S3Server

    with S3Server(folder) as server, FaultProxy(server.port) as proxy:
        proxy.faults.delay(DELAY)
        end.send({**server.environment, "AWS_ENDPOINT_URL": proxy.url})
        end.recv()


def _cases(work: Path, about: str, count: int, size: int) -> Iterator[Case]:
    folder = Path(tempfile.mkdtemp(dir=work))
    with zipfile.ZipFile(folder / "raw.zip", "w") as archive:
        for number in range(count):
            archive.writestr(f"{number}.bin", os.urandom(min(size, 1 << 16)) * (size >> 16))
    download = Download.open(str(folder / "raw.zip"))
    store = Store(f"s3://bench/{folder.name}")
    baseline = measure(lambda: _split_as_before(download, store.url("before")))
    ours = measure(lambda: _split(download, store.url("data")))
    yield Case(
        "h", f"split to S3, {about}", baseline.seconds / ours.seconds, TARGET, ours, baseline, count * size, count
    )
    files = [(path, size, file_hash) for path, file_hash in ours.value]
    baseline = measure(lambda: _fetch_as_before(store, store.url("data", "public"), files, folder / "before"))
    ours = measure(lambda: fetch_all(store, store.url("data", "public"), files, folder / "ours"))
    yield Case(
        "h", f"fetch from S3, {about}", baseline.seconds / ours.seconds, TARGET, ours, baseline, count * size, count
    )
    shutil.rmtree(folder)
    store.remove(store.root)


def _chunks(download: Download) -> Iterator[Any]:
    out = Preparation()
    out.public.copy_tree("", download, "")
    for copies in group_copies(out.operations()):
        assert isinstance(copies, Copies)
        yield from split_copies(in_storage_order(copies, download.container))


def _split(download: Download, url: str) -> list[tuple[str, str]]:
    competition, destination = registry.get("digits"), Destination(url)
    hashes = []
    for chunk in _chunks(download):
        columns = execute([chunk], competition, download, destination)
        hashes += list(zip(columns[1], columns[3], strict=True))
    return hashes


def _split_as_before(download: Download, url: str) -> None:
    destination, container = Destination(url), download.container
    fs: Any = _client_as_before(destination.fs)

    def upload(name: str, read: Callable[[int], bytes]) -> None:
        with fs.open(destination.path(f"public/{name}"), "wb", block_size=8 * BLOCK_BYTES) as sink:
            writer = HashingWriter(sink)
            while piece := read(BLOCK_BYTES):
                writer.write(piece)

    for chunk in _chunks(download):
        small_names = [name for name, size in zip(chunk.names, chunk.sizes, strict=True) if size <= BLOCK_BYTES]
        with ThreadPoolExecutor(16) as pool:
            for start in range(0, len(small_names), 16):
                batch = [(name, container.open(name).read()) for name in small_names[start : start + 16]]
                list(pool.map(lambda item: upload(item[0], _once(item[1])), batch))
        for name, size in zip(chunk.names, chunk.sizes, strict=True):
            if size > BLOCK_BYTES:
                with container.open(name) as file:
                    upload(name, file.read)


def _once(data: bytes) -> Callable[[int], bytes]:
    parts = [data]
    return lambda _: parts.pop() if parts else b""


def _fetch_as_before(store: Store, url: str, files: list[tuple[str, int, str]], folder: Path) -> None:
    folder.mkdir()
    fs, root = _client_as_before(store.top.fs), store.top.path(store.relative(url))

    def fetch(path: str, file_hash: str) -> None:
        with (folder / path).open("wb") as file:
            writer = HashingWriter(file)
            writer.write(fs.cat_file(f"{root}/{path}"))
        assert writer.written().hash == file_hash

    with ThreadPoolExecutor(16) as pool:
        for future in [pool.submit(fetch, path, file_hash) for path, _, file_hash in files]:
            future.result()


def _client_as_before(fs: Any) -> Any:
    options = {**fs.storage_options}
    options["config_kwargs"] = {**options.get("config_kwargs", {}), "max_pool_connections": 10}
    return type(fs)(**options)
