"""A file system does not tell in which order the files of a test set were in the download."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from competitions.preparing.download import Download
from storage.datasets import prepare, write_order
from storage.datasets.manifest import Done, columns_of, manifest_of, table_of
from storage.datasets.plan import Copies
from storage.datasets.write_order import remove_traces, written_in_order
from storage.writers import Destination
from tests.prepared import PreparedCompetitions

FOLDERS = {  # competition -> test images whose class is the name of their folder in the download
    "plant-seedlings-classification": "test",
    "paddy-disease-classification": "test_images",
    "herbarium-2021-fgvc8": "test/images/000",
}


@pytest.mark.parametrize("unpacked", [False, True], ids=["zip", "folder"])
@pytest.mark.parametrize("name", FOLDERS)
def test_inodes_and_times_do_not_follow_the_download(
    name: str, unpacked: bool, prepared: PreparedCompetitions, tmp_path: Path
) -> None:
    found, raw = prepared[name], prepared[name].raw
    with zipfile.ZipFile(raw) as archive:
        classes = {archive.read(member): member.rpartition("/")[0] for member in sorted(archive.namelist())}
        if unpacked:
            raw = tmp_path / "raw"
            for member in sorted(archive.namelist()):
                archive.extract(member, raw)  # hard links would share inodes with these
    prepare(name, raw, tmp_path / "out", "v2", found.params)
    images = sorted(path for path in (tmp_path / "out" / "public" / FOLDERS[name]).iterdir() if path.is_file())
    of_class = {path: classes[path.read_bytes()] for path in images}
    shown = {path: path.stat() for path in images}
    assert {stat.st_nlink for stat in shown.values()} == {1}
    assert len({stat.st_mtime_ns for stat in shown.values()}) == 1
    assert sorted(images, key=lambda path: shown[path].st_ctime_ns) == images, "they change in the order of names"
    before = dict(zip(images, [images[-1], *images], strict=False))
    for shift in (lambda path: path, before.__getitem__):  # a file made again may have the inode of the one before
        by_inode = [of_class[shift(path)] for path in sorted(images, key=lambda path: shown[path].st_ino)]
        assert by_inode != sorted(by_inode), "files of a class are not next to each other"


def test_members_of_one_zip_are_written_once(prepared: PreparedCompetitions, tmp_path: Path) -> None:
    """In the order of their names: every draft of theirs would be one more file that is created and removed."""
    name = "plant-seedlings-classification"
    drafts: list[str] = []
    draft = Destination.draft

    def counted(self: Destination, path: str) -> str:
        drafts.append(path)
        return draft(self, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Destination, "draft", counted)
        prepare(name, prepared[name].raw, tmp_path, "v2", prepared[name].params)
    images = {str(path) for path in (tmp_path / "public" / "test").iterdir()}
    assert images
    assert not images & set(drafts)


def test_computed_files_are_not_told_from_copied_ones(prepared: PreparedCompetitions, tmp_path: Path) -> None:
    """Silence that is computed beside speech that is copied would be known by its time."""
    name = "herbarium-2021-fgvc8"  # its test folder has a computed document beside copied pictures
    prepare(name, prepared[name].raw, tmp_path, "v2", prepared[name].params)
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "public" / "test").rglob("*") if path.is_file()}
    assert {path.suffix for path in times} == {".json", ".jpg"}
    assert len(set(times.values())) == 1


def test_members_of_several_archives_are_not_told_apart(tmp_path: Path) -> None:
    """One chunk for each archive would show from which of them a file is."""
    with zipfile.ZipFile(tmp_path / "raw.zip", "w") as raw:
        for name in "ab":
            with raw.open(f"{name}.zip", "w") as file, zipfile.ZipFile(file, "w"):
                pass
    download = Download.open(str(tmp_path / "raw.zip"))
    tasks = [
        Copies("a.zip", ["public"] * 2, ["test/1", "test/4"], ["y", "x"], [1, 1], []),
        Copies("b.zip", ["public"] * 2, ["test/2", "test/3"], ["y", "x"], [1, 1], []),
    ]
    assert written_in_order(tasks, download) == tasks
    alone = Copies("a.zip", ["public"] * 3, ["test/2", "train/9", "test/1"], ["x", "z", "y"], [1, 2, 3], [0])
    rest, hidden = written_in_order([alone], download)
    assert rest == Copies("a.zip", ["public"], ["train/9"], ["z"], [2], [])
    assert hidden == Copies("a.zip", ["public"] * 2, ["test/1", "test/2"], ["y", "x"], [3, 1], [1], hidden=True)


def test_no_lot_is_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the last lot had stays free, between training files of known labels: of a few files it would tell theirs."""
    monkeypatch.setattr(write_order, "BATCH_FILES", 4)
    destination = Destination(str(tmp_path))
    names = [f"test/{number}" for number in range(9)]
    for name in names:
        destination.put(f"public/{name}", b"")
    lots: list[int] = []
    monkeypatch.setattr(write_order, "_make_again", lambda _, paths: lots.append(len(paths)))
    rows = [Done("public", name, 0, "", None, f"{9 - number}") for number, name in enumerate(names)]
    assert remove_traces(destination, manifest_of([table_of(columns_of(rows))])) == 9
    assert lots == [3, 3, 3]
