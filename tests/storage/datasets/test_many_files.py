"""Datasets of a million files: what is read of them and kept in memory does not grow with their number."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from competitions.preparing.archives import listing
from storage.cache import Cache
from storage.dataset import Dataset
from storage.datasets import local_copy as local_copies
from storage.datasets.commit import MANIFEST, MARKER
from storage.datasets.local_copy import local_copy
from storage.datasets.manifest import Done, columns_of, manifest_of, table_of
from storage.datasets.verify import manifest_rows
from storage.keys import content_key
from storage.store import Store
from storage.upkeep.space import usage_of_datasets
from tests.s3.fixtures import Bucket, FaultyBucket

DATASET = Dataset("v1", "digits", "k")
FILES = 60_000


def rows(count: int) -> list[Done]:
    return [
        Done("public", f"train/images/{n:07}.png", 5, f"{n:064x}", None, f"train.zip!/images/{n:07}.png")
        for n in range(count)
    ]


def write_dataset(store: Store, done: Iterable[Done]) -> None:
    """The manifest and the marker of a dataset, without its files."""
    import io
    import json

    import pyarrow.parquet as pq

    content = io.BytesIO()
    pq.write_table(manifest_of([table_of(columns_of(done))]), content)
    store.write(f"{store.prepared(DATASET)}/{MANIFEST}", content.getvalue())
    store.write(f"{store.prepared(DATASET)}/{MARKER}", json.dumps({"key": "k", "bytes": 1, "files": 1}).encode())


def peak_of(work: Callable[[], object]) -> int:
    """Bytes that Python objects take at most while `work` runs."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_fetch_keeps_no_list_of_files(s3: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(s3.url)
    write_dataset(store, rows(FILES))
    wanted: list[int] = []
    monkeypatch.setattr(
        local_copies, "fetch_all", lambda store, url, files, folder: wanted.append(sum(1 for _ in files))
    )

    def fetch() -> None:
        with local_copy(store, DATASET, "public", Cache(tmp_path / "cache", 1 << 40)) as folder:
            (folder / "public").mkdir(exist_ok=True)

    monkeypatch.setattr(local_copies, "_lay_texts_beside", lambda *_: None)
    assert peak_of(fetch) < 250 * FILES, "a tuple with its texts takes 400 bytes"
    assert wanted == [FILES]
    [copy] = Cache(tmp_path / "cache", 1 << 40).entries()
    assert copy.bytes == 5 * FILES
    assert copy.digest == content_key("public", [(row.path, row.bytes, row.hash) for row in rows(FILES)]), "as ever"


def test_verifying_keeps_no_list_of_files(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    write_dataset(store, rows(FILES))
    assert peak_of(lambda: sum(1 for _ in manifest_rows(store, DATASET))) < 250 * FILES


class TestObjectsOfABucket:
    @pytest.fixture
    def store(self, s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> Store:
        monkeypatch.setattr(listing, "_PAGE_ENTRIES", 10)
        store = Store(s3.url)
        for name in [f"data/public/{n:02}" for n in range(25)] + ["data", "data2/x", "dat/x"]:
            store.write(store.url("prepared", "v1", "digits", name), b"12345")
        return store

    def test_are_counted_page_by_page(self, store: Store) -> None:
        [usage] = [
            each for each in usage_of_datasets(store, "v1", "digits") if each.dataset and each.dataset.key == "data"
        ]
        assert (usage.bytes, usage.files, usage.state) == (130, 26, "incomplete")

    def test_are_removed_page_by_page(self, store: Store, s3: Bucket) -> None:
        store.remove(store.url("prepared", "v1", "digits", "data"))
        assert s3.names() == [f"prepared/v1/digits/{name}/x" for name in ("dat", "data2")]
        store.remove(store.url("prepared", "v1", "digits", "data"))  # nothing is there

    def test_that_cannot_be_removed_are_told(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        real = type(store.top.fs).call_s3

        def refusing(fs: Any, method: str, *arguments: Any, **options: Any) -> Any:
            if method == "delete_objects":
                return {"Errors": [{"Key": "x", "Code": "AccessDenied", "Message": "locked"}]}
            return real(fs, method, *arguments, **options)

        monkeypatch.setattr(type(store.top.fs), "call_s3", refusing)
        with pytest.raises(PermissionError, match="x cannot be removed: locked"):
            store.remove(store.url("prepared", "v1", "digits", "data"))


def test_a_folder_is_removed_with_a_request_for_a_page(
    faulty_s3: FaultyBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "_PAGE_ENTRIES", 10)
    store = Store(faulty_s3.url)
    for number in range(25):
        store.write(store.url("data", f"{number}"), b"x")
    before = len(faulty_s3.proxy.requests)
    store.remove(store.url("data"))
    made = [each.method for each in faulty_s3.proxy.requests[before:]]
    assert sorted(made) == ["DELETE", *["LIST"] * 3, *["POST"] * 3]
