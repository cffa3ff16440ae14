"""A file system does not tell in which order the files of a test set were in the download."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from storage.datasets import prepare
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
