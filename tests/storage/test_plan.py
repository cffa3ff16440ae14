"""Work as values: packed and unpacked it is the same, and plain JSON."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from competitions.download import Download, Member
from competitions.preparation import Archive, Content, Copy, Derived
from storage.execute import Done, Task
from storage.journal import Journal, columns_of, manifest_of
from storage.plan import Chunk, in_storage_order, pack, unpack
from storage.writers import Destination

TASKS = [
    Task("public", "a", Copy(Member("", "x", 3))),
    Task("public", "b", Copy(Member("", "y", 4)), md5=True),
    Task("private", "a", Copy(Member("in.zip", "x", 5))),
    Task("public", "c.zip", Archive("zip", (("1", Member("", "x", 3)), ("2", Member("in.zip", "x", 5))), True, ("f",))),
    Task("public", "d.zip", Archive("zip", ())),
    Task("public", "e", Derived("function", (1, "two", [3])), md5=True),
]


def test_packing_loses_nothing() -> None:
    chunk = pack(TASKS)
    assert sorted(unpack(chunk.tasks), key=lambda task: task.name) == sorted(TASKS, key=lambda task: task.name)
    assert unpack(json.loads(json.dumps(chunk.tasks))) == unpack(chunk.tasks)
    assert (chunk.files, chunk.bytes) == (6, 3 + 4 + 5 + 8)


def test_computed_content_does_not_travel() -> None:
    with pytest.raises(TypeError, match=r"public/t\.csv"):
        pack([Task("public", "t.csv", Content(list))])


def test_copies_come_in_storage_order(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as file:
        for name in "cab":
            file.writestr(name, name)
    download = Download.open(str(tmp_path / "x.zip"))
    tasks = [Task("public", name, Copy(download.file(name))) for name in "abc"]
    assert [task.path for task in in_storage_order([*tasks, TASKS[-1]], download)] == ["e", "c", "a", "b"]


def test_a_journal_is_read_as_it_was_written(tmp_path: Path) -> None:
    journal = Journal(Destination(str(tmp_path)), "k")
    rows = columns_of([Done("public", "b", 1, "h", None, "s"), Done("private", "c", 2, "h", "m", "s")])
    journal.note("declared", rows)
    assert journal.resume() == ({}, None), "without a plan it starts from the beginning"
    journal.plan([pack(TASKS)])
    journal.note("0", columns_of([]))
    done, chunks = journal.resume()
    assert done == {"declared": rows, "0": [[], [], [], [], [], []]}
    assert chunks is not None
    assert unpack(chunks[0].tasks) == unpack(pack(TASKS).tasks)
    assert isinstance(chunks[0], Chunk)
    journal.clear()
    assert journal.resume() == ({}, None)


def test_the_manifest_is_sorted_by_part_and_path() -> None:
    first = columns_of([Done("public", "b", 1, "h", None, "s"), Done("public", "B", 1, "h", None, "s")])
    table = manifest_of([first, columns_of([]), columns_of([Done("private", "c", 2, "h", "m", "s")])])
    assert (table["part"] + "/" + table["path"]).tolist() == ["private/c", "public/B", "public/b"]
    assert table["md5"].tolist() == ["m", None, None]
