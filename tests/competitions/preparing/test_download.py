"""The view of a download is the same whatever the download is packed in."""

from __future__ import annotations

import io
import re
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import fsspec
import py7zr
import pytest

from competitions.errors import DownloadError
from competitions.preparing.download import Download, Member

FILES = {
    "train.csv": b"id,value\n1,0.1\n2,0.30000000000000004\n",
    "images/a.png": b"A" * 1000,
    "images/b.png": b"B" * 2000,
    "images/deep/c.png": b"C",
    "notes.txt": b"one\r\ntwo\n",
}


def directory(root: Path) -> str:
    for name, content in FILES.items():
        path = root / "raw" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return str(root / "raw")


def zipped(root: Path, method: int = zipfile.ZIP_DEFLATED) -> str:
    with zipfile.ZipFile(root / "raw.zip", "w", method) as archive:
        archive.writestr("images/", b"")
        for name, content in FILES.items():
            archive.writestr(name, content)
    return str(root / "raw.zip")


def tarred(root: Path) -> str:
    with tarfile.open(root / "raw.tar.gz", "w:gz") as archive:
        for name, content in FILES.items():
            info = tarfile.TarInfo(f"./{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return str(root / "raw.tar.gz")


def seven_zipped(root: Path) -> str:
    with py7zr.SevenZipFile(root / "raw.7z", "w") as archive:
        for name, content in FILES.items():
            archive.writestr(content, name)
    return str(root / "raw.7z")


def in_memory(root: Path) -> str:
    path = f"memory://{root.name}/raw.zip"
    with fsspec.open(path, "wb") as file:
        file.write(Path(zipped(root)).read_bytes())
    return path


def memory_folder(root: Path) -> str:
    for name, content in FILES.items():
        with fsspec.open(f"memory://{root.name}/folder/{name}", "wb") as file:
            file.write(content)
    return f"memory://{root.name}/folder"


@pytest.mark.parametrize("pack", [directory, zipped, tarred, seven_zipped, in_memory, memory_folder])
def test_every_packing_gives_the_same_view(pack: Callable[[Path], str], tmp_path: Path) -> None:
    view = Download.open(pack(tmp_path))

    assert view.names() == sorted(FILES)
    assert view.names("images") == ["images/a.png", "images/b.png", "images/deep/c.png"]
    assert view.folders() == ["images"]
    assert view.folders("images") == ["deep"]
    assert view.glob("images/*.png") == ["images/a.png", "images/b.png"]
    assert view.glob("*.csv") == ["train.csv"]
    assert "notes.txt" in view
    assert view.file("images/b.png") == Member("", "images/b.png", 2000)
    assert {name: view.read_bytes(name) for name in view.names()} == FILES
    assert view.read_text("notes.txt") == "one\ntwo\n"
    assert view.read_csv("train.csv")["value"].tolist() == [0.1, 0.30000000000000004]
    assert [name for name, _ in view.tree("images")] == ["a.png", "b.png", "deep/c.png"]


@pytest.mark.parametrize("inner", [zipped, tarred, seven_zipped])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_nested_archives_are_read_in_place(inner: Callable[[Path], str], method: int, tmp_path: Path) -> None:
    packed = Path(inner(tmp_path))
    with zipfile.ZipFile(tmp_path / "outer.zip", "w", method) as archive:
        archive.write(packed, packed.name)
    outer = Download.open(str(tmp_path / "outer.zip"))

    nested = outer.archive(packed.name)

    assert {name: nested.read_bytes(name) for name in nested.names()} == FILES
    member = nested.file("images/a.png")
    assert str(member) == f"{packed.name}!/images/a.png"
    assert outer.view(member.archive).read_bytes(member.name) == FILES["images/a.png"]


def test_files_are_those_of_single_calls(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as file:
        for name in ("a/1.png", "a/2.png", "b"):
            file.writestr(name, name)
    raw = Download.open(str(tmp_path / "x.zip"))
    names = ["b", "a/2.png", "b"]
    assert raw.files(iter(names)) == [raw.file(name) for name in names]
    assert raw.files([]) == []
    for missing in ("a/3.png", "a", "a/"):
        with pytest.raises(DownloadError) as one:
            raw.file(missing)
        with pytest.raises(DownloadError, match=re.escape(str(one.value))):
            raw.files(["b", missing])


def test_a_missing_file_is_named_with_close_matches(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"no file 'trian.csv'.*train\.csv"):
        Download.open(zipped(tmp_path)).read_csv("trian.csv")


@pytest.mark.parametrize("pack", [zipped, tarred, seven_zipped])
def test_a_cut_archive_is_no_download(pack: Callable[[Path], str], tmp_path: Path) -> None:
    path = Path(pack(tmp_path))
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DownloadError, match="download it again"):
        Download.open(str(path)).names()


def test_what_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="does not exist"):
        Download.open(str(tmp_path / "nowhere.zip"))
