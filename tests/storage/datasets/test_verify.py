"""Verifying compares sorted streams: each stored file is found, each missing or cut one is named."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from competitions import registry
from competitions.preparing.archives import listing
from competitions.preparing.archives.listing import files_below
from storage.dataset import Dataset
from storage.datasets import manifest as manifests
from storage.datasets import verify as verifying
from storage.datasets.verify import manifest_rows, verify
from storage.store import Store
from tests.s3.fixtures import FaultyBucket

DATASET = Dataset("v2", "digits", "k")
NAMES = ["private/a.csv"]
NAMES += [f"public/{name}" for name in ("B", "a-b", "a.b", "a/b", "ab", "\u00fc", "\uffee", "\U0001f600")]


def store_dataset(store: Store, names: list[str]) -> None:
    """Files with their number as size, and their manifest."""
    rows = [(name.split("/", 1)[0], name.split("/", 1)[1], number + 1) for number, name in enumerate(names)]
    table = pa.table({"part": [r[0] for r in rows], "path": [r[1] for r in rows], "bytes": [r[2] for r in rows]})
    table = table.append_column("md5", pa.nulls(len(table), pa.string()))
    sink = pa.BufferOutputStream()
    pq.write_table(table.sort_by([("part", "ascending"), ("path", "ascending")]), sink)
    store.write(f"{store.prepared(DATASET)}/manifest.parquet", sink.getvalue().to_pybytes())
    for part, path, size in rows:
        store.write(f"{store.prepared(DATASET)}/{part}/{path}", bytes(size))


@pytest.fixture(params=["disk", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(listing, "_PAGE_ENTRIES", 3)
    monkeypatch.setattr(manifests, "BATCH_ROWS", 4)
    if request.param == "disk":
        return Store(str(tmp_path))
    return Store(request.getfixturevalue("faulty_s3").url)


def damaged(store: Store) -> list[str]:
    return verify(store, DATASET, registry.get("digits")).damaged


def test_damage_is_found_among_names_of_every_order(store: Store) -> None:
    store_dataset(store, NAMES)
    assert damaged(store) == []
    folder = store.prepared(DATASET)
    store.write(f"{folder}/public/extra", b"not in the manifest")
    store.write(f"{folder}/public/a/b", b"")
    store.remove(f"{folder}/{NAMES[0]}")
    store.remove(f"{folder}/{NAMES[-1]}")
    assert damaged(store) == [NAMES[0], "public/a/b", NAMES[-1]]
    assert [path for path, *_ in manifest_rows(store, DATASET)] == NAMES


def test_a_listing_is_read_page_by_page(faulty_s3: FaultyBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_PAGE_ENTRIES", 3)
    store = Store(faulty_s3.url)
    store_dataset(store, NAMES)
    before = faulty_s3.proxy.count("LIST")
    found = files_below(store.top.fs, store.top.path(store.relative(store.prepared(DATASET))))
    assert [name for name, _ in itertools.islice(found, 3)] == ["manifest.parquet", *NAMES[:2]]
    assert faulty_s3.proxy.count("LIST") - before == 1
    assert [name for name, _ in found] == NAMES[2:]
    assert faulty_s3.proxy.count("LIST") - before == 4, "ten names in pages of three"


def test_a_store_whose_listing_is_not_sorted_is_asked_for_single_files(
    faulty_s3: FaultyBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(faulty_s3.url)
    store_dataset(store, NAMES)

    def backwards(fs: Any, root: str) -> Iterator[tuple[str, int]]:
        yield from reversed(list(files_below(fs, root)))

    monkeypatch.setattr(verifying, "files_below", backwards)
    assert damaged(store) == []
    store.remove(f"{store.prepared(DATASET)}/public/ab")
    assert damaged(store) == ["public/ab"]
