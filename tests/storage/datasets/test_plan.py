"""Work as values: packed and unpacked it is the same, and plain JSON."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from competitions.preparing.declaration import Archive, Content, Copy, Derived
from competitions.preparing.download import Download, Member
from storage.datasets.journal import Journal, Size
from storage.datasets.manifest import Done, columns_of, manifest_of, table_of
from storage.datasets.plan import (
    Chunk,
    Copies,
    Several,
    Task,
    group_copies,
    in_storage_order,
    pack,
    plan,
    split_copies,
    unpack,
)
from storage.writers import Destination

OTHERS = [
    Task("public", "c.zip", Archive("zip", (("1", Member("", "x", 3)), ("2", Member("in.zip", "x", 5))), True, ("f",))),
    Task("public", "d.zip", Archive("zip", ())),
    Task("public", "e", Derived("function", (1, "two", [3])), md5=True),
]
TASKS = [
    Task("public", "a", Copy(Member("", "x", 3))),
    *OTHERS,
    Task("public", "b", Copy(Member("", "y", 4)), md5=True),
    Task("private", "a", Copy(Member("in.zip", "x", 5))),
]
COPIES = [
    Copies("", ["public", "public"], ["a", "b"], ["x", "y"], [3, 4], [1]),
    Copies("in.zip", ["private"], ["a"], ["x"], [5], []),
]


def download_of(tmp_path: Path, names: Iterable[str]) -> Download:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as file:
        for name in names:
            file.writestr(name, name)
    return Download.open(str(tmp_path / "x.zip"))


def copies(count: int, size: int, archive: str = "", checked: Sequence[int] = ()) -> Copies:
    names = [f"{number}" for number in range(count)]
    return Copies(archive, ["public"] * count, names, names, [size] * count, list(checked))


def test_copies_from_an_archive_are_group_copies() -> None:
    assert group_copies([task[:3] for task in TASKS], ["public/b", "public/e"]) == [*OTHERS, *COPIES]


def test_packing_loses_nothing() -> None:
    tasks: list[Any] = [*OTHERS, *COPIES]
    for task in tasks:
        packed = pack(task)
        assert unpack(packed) == task
        assert json.loads(json.dumps(packed)) == packed


def test_computed_content_does_not_travel() -> None:
    with pytest.raises(TypeError, match=r"public/t\.csv"):
        pack(Task("public", "t.csv", Content(list)))


def test_a_part_of_copies_is_the_rows_at_these_places() -> None:
    rows = copies(20, 3, checked=[0, 4, 5, 9, 19])
    for start, stop in ((0, 20), (0, 5), (4, 10), (5, 5), (10, 20), (19, 20)):
        assert rows.part(start, stop) == rows.at(range(start, stop))


def test_copies_come_in_storage_order(tmp_path: Path) -> None:
    download = download_of(tmp_path, "cab")
    unordered = Copies("", ["public", "private", "public"], ["1", "2", "3"], ["a", "b", "c"], [1, 1, 1], [0])
    (chunk,) = plan([unordered], download)
    assert (chunk.files, chunk.bytes) == (3, 3)
    assert unpack(chunk.task) == Copies(
        "", ["public", "public", "private"], ["3", "1", "2"], ["c", "a", "b"], [1, 1, 1], [1]
    )


def test_a_member_that_goes_to_several_places_is_copied_to_each(tmp_path: Path) -> None:
    twice = Copies("", ["public", "private", "public"], ["1", "2", "3"], ["b", "a", "b"], [1, 1, 1], [2])
    ordered = in_storage_order(twice, download_of(tmp_path, "cab").container)
    assert ordered == Copies("", ["private", "public", "public"], ["2", "1", "3"], ["a", "b", "b"], [1, 1, 1], [2])


def test_a_member_that_is_not_there_is_not_passed_over(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="z"):
        in_storage_order(Copies("", ["public"], ["1"], ["z"], [1], []), download_of(tmp_path, "cab").container)


@pytest.mark.parametrize(("size", "chunks"), [(0, 3), (1 << 20, 40), (200 << 20, 5000)])
def test_chunks_are_bounded_and_lose_nothing(size: int, chunks: int) -> None:
    whole = copies(5000, size, checked=[0, 2500, 4999])
    found = list(split_copies(whole))
    assert len(found) == chunks
    assert [name for each in found for name in each.names] == whole.names
    assert max(sum(each.sizes) for each in found) <= max(128 << 20, size)
    assert [each.names[row] for each in found for row in each.checked] == ["0", "2500", "4999"]


def test_what_is_read_of_a_sequential_archive_is_one_chunk(tmp_path: Path) -> None:
    of_7z = copies(10, 1 << 30, "in.zip!/x.7z")
    of_tar = [Task("public", f"{n}.zip", Archive("zip", ((n, Member("x.tar.gz", n, 2)),))) for n in "ab"]
    made = Task("public", "c.tar", Archive("tar", (("1", Member("made:/there/x.tar.gz", "1", 2)),)))
    both = Task("public", "d.zip", Archive("zip", (("1", Member("x.7z", "1", 2)), ("2", Member("x.tar.gz", "2", 2)))))
    chunks = list(plan([of_tar[0], of_7z, made, of_tar[1], both], download_of(tmp_path, "x")))
    assert [(chunk.files, chunk.bytes, unpack(chunk.task)) for chunk in chunks] == [
        (2, 4, Several([*of_tar])),
        (10, 10 << 30, of_7z),
        (1, 2, made),
        (1, 4, both),
    ]


def test_each_archive_is_a_chunk_of_its_own(tmp_path: Path) -> None:
    chunks = plan(OTHERS, download_of(tmp_path, "x"))
    assert [(chunk.files, chunk.bytes, unpack(chunk.task)) for chunk in chunks] == [
        (1, 8, OTHERS[0]),
        (1, 0, OTHERS[1]),
        (1, 0, OTHERS[2]),
    ]


def test_a_journal_is_read_as_it_was_written(tmp_path: Path) -> None:
    journal = Journal(Destination(str(tmp_path)), "k")
    rows = columns_of([Done("public", "b", 1, "h", None, "s"), Done("private", "c", 2, "h", "m", "s")])
    journal.save_rows("declared", rows)
    assert journal.load() == ({}, None), "without a plan it starts from the beginning"
    planned = [Chunk(2, 7, pack(COPIES[0])), Chunk(1, 8, pack(OTHERS[0]))]
    journal.save_plan(planned)
    journal.save_rows("0", columns_of([]))
    done, sizes = journal.load()
    assert done == {"declared": table_of(rows), "0": table_of(columns_of([]))}
    assert sizes == [Size(2, 7), Size(1, 8)]
    assert [unpack(journal.load_task(number)) for number in range(2)] == [COPIES[0], OTHERS[0]]
    journal.clear()
    assert journal.load() == ({}, None)


def test_the_manifest_is_sorted_by_part_and_path() -> None:
    first = columns_of([Done("public", "b", 1, "h", None, "s"), Done("public", "B", 1, "h", None, "s")])
    table = manifest_of(map(table_of, [first, columns_of([]), columns_of([Done("private", "c", 2, "h", "m", "s")])]))
    assert [f"{row['part']}/{row['path']}" for row in table.to_pylist()] == ["private/c", "public/B", "public/b"]
    assert table["md5"].to_pylist() == ["m", None, None]
