"""The disk is full while tables, local copies or the notes of a preparation are written: nothing is half there."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from common.causes import cause_of, explain
from storage.cache import PARTIAL, Cache
from storage.datasets.commit import MARKER
from storage.datasets.job import Job
from storage.datasets.journal import Journal
from storage.datasets.local_copy import fetch_all
from storage.datasets.materialise import materialise
from storage.store import Store
from storage.tables import read_table, write_table
from tests.disks import SmallDisk
from tests.s3.fixtures import FaultyBucket


def require_said(error: BaseException) -> None:
    assert cause_of(error).kind == "disk full"
    assert not cause_of(error).passes
    assert explain(error).startswith("No space left on device")
    assert "mlebench gc" in explain(error)


def test_a_table_keeps_what_it_had(small_disk: SmallDisk) -> None:
    store = Store(str(small_disk.path / "store"))
    write_table(store, "grades", "g", [{"competition_id": "digits", "score": 0.5}])
    small_disk.fill()
    many = [{"competition_id": os.urandom(20).hex(), "score": 0.1} for _ in range(5000)]
    with pytest.raises(OSError, match="No space left") as caught:
        write_table(store, "grades", "g", many)
    require_said(caught.value)
    assert read_table(store, "grades")["score"].tolist() == [0.5]
    assert [path.name for path in (small_disk.path / "store").rglob("*.partial")] == []
    small_disk.empty()
    write_table(store, "grades", "g", many)
    assert len(read_table(store, "grades")) == 5000


def test_a_local_copy_is_not_complete_and_goes_on(small_disk: SmallDisk, faulty_s3: FaultyBucket) -> None:
    from blake3 import blake3

    store, content = Store(faulty_s3.url), {name: os.urandom(3 << 20) for name in ("a", "b")}
    for name, data in content.items():
        store.write(store.url("data", name), data)
    files = [(name, len(data), blake3(data).hexdigest()) for name, data in content.items()]
    cache = Cache(small_disk.path / "cache", limit=1 << 30)

    def fill(folder: Path) -> None:
        if not (folder / "a").exists():
            fetch_all(store, store.url("data"), files[:1], folder)
            small_disk.fill(leave=1 << 20)  # somebody else takes the room that was there at the beginning
        fetch_all(store, store.url("data"), files, folder)

    def use() -> None:
        with cache.use("copy", "copy", 6 << 20, fill) as folder:
            assert {path.name: path.read_bytes() for path in folder.iterdir()} == content

    with pytest.raises(OSError, match="No space left") as caught:
        use()
    require_said(caught.value)
    (entry,) = cache.entries()
    assert not entry.complete
    assert not list(small_disk.path.rglob(f"*{PARTIAL}"))
    small_disk.empty()
    use()
    assert faulty_s3.proxy.count("GET", "data/a") == 1, "what was there was not fetched again"


def test_the_notes_of_a_preparation_are_whole_or_missing(
    small_disk: SmallDisk, digits_zip: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job("digits", str(digits_zip), str(small_disk.path / "out"), key="k")
    save = Journal.save_rows

    def save_on_full(own: Journal, name: str, rows: list[list[object]]) -> None:
        small_disk.fill()
        save(own, name, rows)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "save_rows", save_on_full)
        with pytest.raises(OSError, match="No space left") as caught:
            materialise(job)
    require_said(caught.value)
    assert caught.value.errno == errno.ENOSPC
    assert not (small_disk.path / "out" / MARKER).exists()
    small_disk.empty()
    assert len(materialise(job)) == 5
