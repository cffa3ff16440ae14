"""Many files and large ones on S3: requests overlap, and neither files nor bytes are held without bound.

A request that hangs at the proxy shows which others are sent meanwhile. Nothing here measures time.
"""

from __future__ import annotations

import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from blake3 import blake3

from competitions import registry
from competitions.preparing.declaration import Preparation
from competitions.preparing.download import Download
from storage.datasets.execute import execute
from storage.datasets.local_copy import fetch_all
from storage.datasets.plan import group_copies
from storage.store import Store
from storage.writers import MAX_BYTES_IN_FLIGHT, MAX_TRANSFERS, MAX_WHOLE_BYTES, Destination, StoreError
from tests.s3.fixtures import Bucket, FaultyBucket
from tests.waiting import until

MIB = 1 << 20


@pytest.fixture
def store(faulty_s3: FaultyBucket) -> Store:
    return Store(faulty_s3.url)


def started(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def scans(folder: Path, count: int, size: int, archive: bool) -> Download:
    """A download of `count` files of `size` bytes, as a zip archive or as a folder."""
    data = {f"{number}.bin": bytes([number]) * size for number in range(count)}
    if not archive:
        for name, content in data.items():
            (folder / "raw").mkdir(exist_ok=True)
            (folder / "raw" / name).write_bytes(content)
        return Download.open(str(folder / "raw"))
    with zipfile.ZipFile(folder / "raw.zip", "w") as file:
        for name, content in data.items():
            file.writestr(name, content)
    return Download.open(str(folder / "raw.zip"))


def split(download: Download, url: str) -> list[list[object]]:
    out = Preparation()
    out.public.copy_tree("scans", download, "")
    tasks = group_copies(out.operations())
    return execute(tasks, registry.get("digits"), download, Destination(url))


@pytest.mark.parametrize("archive", [True, False])
def test_files_of_2_mib_are_uploaded_concurrently(faulty_s3: FaultyBucket, tmp_path: Path, archive: bool) -> None:
    download = scans(tmp_path, 20, 2 * MIB, archive)
    first = faulty_s3.faults.hang("PUT")
    thread = started(lambda: split(download, faulty_s3.url))
    until(lambda: faulty_s3.proxy.count("PUT") == 20, what="uploads beside one that hangs")
    first.release()
    thread.join()
    assert len(faulty_s3.names()) == 20


def test_uploads_have_a_budget_of_bytes(faulty_s3: FaultyBucket, tmp_path: Path) -> None:
    size, at_once = 12 * MIB, MAX_BYTES_IN_FLIGHT // (12 * MIB)
    assert size <= MAX_WHOLE_BYTES
    download = scans(tmp_path, 2 * at_once, size, archive=True)
    uploads = faulty_s3.faults.hang("PUT", times=100)
    done: list[list[list[object]]] = []
    thread = started(lambda: done.append(split(download, faulty_s3.url)))
    until(lambda: faulty_s3.proxy.count("PUT") >= at_once)
    assert faulty_s3.proxy.count("PUT") == at_once
    uploads.release()
    thread.join()
    [columns] = done
    assert columns[1] == [f"scans/{number}.bin" for number in sorted(range(2 * at_once), key=str)]
    assert columns[3] == [blake3(bytes([n]) * size).hexdigest() for n in sorted(range(2 * at_once), key=str)]


def test_the_files_of_a_run_are_uploaded_concurrently(faulty_s3: FaultyBucket, store: Store, tmp_path: Path) -> None:
    files = {}
    for number in range(MAX_TRANSFERS):
        path = files[f"code/{number}.py"] = tmp_path / f"{number}"
        path.write_text(f"{number}")
    first = faulty_s3.faults.hang("PUT")
    thread = started(lambda: store.put_many(store.url("run"), files))
    until(lambda: faulty_s3.proxy.count("PUT") == MAX_TRANSFERS, what="uploads beside one that hangs")
    first.release()
    thread.join()
    assert {store.read(store.url("run", name)) for name in files} == {str(n).encode() for n in range(MAX_TRANSFERS)}


class TestFetching:
    def test_a_million_files_are_fetched_through_a_window(
        self, faulty_s3: FaultyBucket, store: Store, tmp_path: Path
    ) -> None:
        content = b"small"
        store.write(store.url("data", "x"), content)
        listed = 0

        def files() -> Iterator[tuple[str, int, str]]:
            nonlocal listed
            for _ in range(1_000_000):
                listed += 1
                yield "x", len(content), blake3(content).hexdigest()
            raise AssertionError("read to the end")

        gets = faulty_s3.faults.hang("GET", "x$", times=MAX_TRANSFERS)
        failed: list[BaseException] = []

        def fetch() -> None:
            try:
                fetch_all(store, store.url("data"), files(), tmp_path)
            except StoreError as error:
                failed.append(error)

        thread = started(fetch)
        until(
            lambda: faulty_s3.proxy.count("GET", "x$") == MAX_TRANSFERS,
            what="as many requests as the window has room for",
        )
        assert listed <= MAX_TRANSFERS + 1
        faulty_s3.client.delete_object(Bucket=faulty_s3.name, Key="some/prefix/data/x")
        gets.release()
        thread.join()
        assert "is missing in the store" in str(failed[0])
        assert not list(tmp_path.iterdir()), "and no drafts"

    def test_a_large_file_is_fetched_in_ranges_at_a_time(
        self, faulty_s3: FaultyBucket, store: Store, tmp_path: Path
    ) -> None:
        content = b"".join(bytes([number]) * (7 * MIB) for number in range(6))
        store.write(store.url("data", "large"), content)
        first = faulty_s3.faults.hang("GET", "large$")
        known = [("large", len(content), blake3(content).hexdigest())]
        thread = started(lambda: fetch_all(store, store.url("data"), known, tmp_path))
        until(lambda: faulty_s3.proxy.count("GET", "large$") == 6, what="ranges beside one that hangs")
        first.release()
        thread.join()
        assert (tmp_path / "large").read_bytes() == content
        assert not (tmp_path / "large").stat().st_mode & 0o222

    @pytest.mark.parametrize("size", [5, 9 * MIB])
    def test_a_file_with_the_longest_name_is_fetched(self, s3: Bucket, tmp_path: Path, size: int) -> None:
        store, content, name = Store(s3.url), bytes(size), "ü" * 127 + "x"
        store.write(store.url("data", name), content)
        fetch_all(store, store.url("data"), [(name, size, blake3(content).hexdigest())], tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == [name]

    def test_a_large_file_that_was_changed_is_found(self, s3: Bucket, tmp_path: Path) -> None:
        store, content = Store(s3.url), bytes(20 * MIB)
        store.write(store.url("data", "large"), content[:-1] + b"x")
        with pytest.raises(StoreError, match="large differs"):
            fetch_all(store, store.url("data"), [("large", len(content), blake3(content).hexdigest())], tmp_path)
        assert not list(tmp_path.iterdir())
