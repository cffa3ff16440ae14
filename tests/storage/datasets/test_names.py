"""Names of files that cannot be stored are told in one line when a dataset is declared, before anything is written."""

from __future__ import annotations

import os
import tarfile
import unicodedata
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from common.errors import UserError
from competitions.preparing.declaration import Preparation
from competitions.preparing.download import Download
from storage.datasets import prepare
from storage.datasets.declare import require_storable
from storage.writers import Destination

TREE = """
from competitions.preparing.declaration import Preparation

def prepare(raw, edition, params):
    out = Preparation()
    out.public.copy_tree("", raw, "data")
    return out
"""
UNDECODABLE = os.fsdecode(b"caf\xe9.txt")


@pytest.fixture
def copy_all(tmp_path: Path, digits_folder: Callable[[str], Path]) -> Callable[[Path], None]:
    """Prepares a competition that copies all files of its download."""
    folder = digits_folder(TREE)

    def run(raw: Path) -> None:
        prepare("digits", raw, tmp_path / "out", folder=folder)

    return run


@pytest.fixture
def digits_folder(tmp_path: Path) -> Callable[[str], Path]:
    """A copy of the folder of digits with another prepare.py."""
    import shutil

    from competitions import registry

    def make(code: str) -> Path:
        folder = tmp_path / "odd" / "digits"
        shutil.copytree(registry.get("digits").folder, folder)
        (folder / "prepare.py").write_text(code)
        return folder

    return make


def zip_with(path: Path, name: bytes) -> Path:
    """A zip archive with a good file, and one of this name, which says that it is UTF-8."""
    place = "data/" + "ü" + "x" * (len(name) - 2)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data/good.txt", b"1")
        archive.writestr(place, b"2")
    path.write_bytes(path.read_bytes().replace(place.encode(), b"data/" + name))
    return path


def tar_with(path: Path, name: bytes) -> Path:
    """The same as a tar archive, in a zip archive."""
    with tarfile.open(path.with_suffix(".tar"), "w") as archive:
        for each in ("data/good.txt", os.fsdecode(b"data/" + name)):
            archive.addfile(tarfile.TarInfo(each))
    return path.with_suffix(".tar")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (b"caf\xe9.txt", "not valid UTF-8"),
        (b"\xed\xa0\x80.txt", "not valid UTF-8"),
        (b"a\nb.txt", "control character"),
        (b"a\\b.txt", "backslash"),
        (b"../../up.txt", "not a plain relative path"),
        (b"/etc/up.txt", "not a plain relative path"),
        (b"x" * 256, "more than 255"),
        (("ü" * 130).encode(), "more than 255"),
        (b"/".join([b"y" * 200] * 5), "more than 700"),
    ],
)
@pytest.mark.parametrize("make", [zip_with, tar_with])
def test_a_name_that_cannot_be_stored_is_told_when_it_is_declared(
    tmp_path: Path, copy_all: Callable[[Path], None], make: Callable[[Path, bytes], Path], name: bytes, says: str
) -> None:
    with pytest.raises(UserError, match=says) as told:
        copy_all(make(tmp_path / "raw.zip", name))
    assert str(told.value).isprintable(), "one line"
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()], "nothing was written"


def test_a_name_that_is_not_wanted_is_no_reason_to_refuse_an_archive(tmp_path: Path) -> None:
    raw = Download.open(str(zip_with(tmp_path / "raw.zip", b"caf\xe9.txt")))
    assert raw.names("data") == ["data/" + UNDECODABLE, "data/good.txt"]
    assert raw.read_bytes("data/good.txt") == b"1"


def test_a_renamed_member_with_an_undecodable_name_is_told(tmp_path: Path) -> None:
    raw = Download.open(str(zip_with(tmp_path / "raw.zip", b"caf\xe9.txt")))
    out = Preparation()
    out.public.copy("cafe.txt", raw.file(f"data/{UNDECODABLE}"))
    with pytest.raises(UserError, match=r"caf\\udce9.txt' is a file of the download whose name is not valid UTF-8"):
        require_storable(out, Destination(str(tmp_path)))


@pytest.mark.parametrize("name", ["a\0b", "../x", "/x", "a\nb", UNDECODABLE])
def test_members_of_archives_have_plain_names_too(name: str, tmp_path: Path) -> None:
    raw = Download.open(str(zip_with(tmp_path / "raw.zip", b"x.txt")))
    with pytest.raises(UserError, match=r"cannot be a member of public/x\.zip: it "):
        Preparation().public.archive("x.zip", {name: raw.file("data/good.txt")})


def test_a_file_that_is_also_a_folder_is_told(tmp_path: Path) -> None:
    out = Preparation()
    out.public.text("a/b", "1")
    out.public.text("a/b/c/d", "2")
    with pytest.raises(UserError, match="public/a/b is declared as a file, and other files are declared below it"):
        require_storable(out, Destination(str(tmp_path)))


@pytest.mark.parametrize(
    ("first", "second"),
    [("train/a.jpg", "train/A.jpg"), ("Train/a.jpg", "train/b.jpg"), ("caf\u00e9.txt", "cafe\u0301.txt")],
)
def test_names_that_a_disk_takes_for_the_same_are_told(
    first: str, second: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = Preparation()
    out.public.text(first, "1")
    out.public.text(second, "2")
    require_storable(out, Destination(str(tmp_path)))  # this disk keeps them apart
    same = unicodedata.normalize

    def lexists(path: Path) -> bool:
        """As on a disk that keeps neither case nor normal forms apart."""
        wanted = same("NFC", path.name).casefold()
        return any(same("NFC", each.name).casefold() == wanted for each in path.parent.iterdir())

    monkeypatch.setattr("storage.datasets.declare.os.path.lexists", lexists)
    with pytest.raises(UserError, match="which this disk takes for the same; choose a store on another disk"):
        require_storable(out, Destination(str(tmp_path)))


def test_a_file_with_the_longest_name_is_written_and_replaced(tmp_path: Path) -> None:
    """Also below a folder without drafts, such as that of a run: agents choose the names of their files."""
    out = Destination(str(tmp_path))
    for content in (b"one", b"two"):
        out.write("logs/" + "x" * 255, [content])
    assert (tmp_path / "logs" / ("x" * 255)).read_bytes() == b"two"
    assert len(list((tmp_path / "logs").iterdir())) == 1
