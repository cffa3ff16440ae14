"""Whatever a tool or a system makes of a download is read, and makes the same files, or is named with the remedy."""

from __future__ import annotations

import hashlib
import io
import struct
import tarfile
import unicodedata
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import py7zr
import pytest

from common.settings import get_settings
from competitions.errors import DownloadError
from competitions.preparing.download import Download
from flows.cli import main
from storage.dataset import Dataset
from storage.datasets.prepared import committed_key
from tests.competitions.test_registry import copy_of
from tests.stores import Store

ID = "leaf-classification"
Files = Mapping[str, bytes]


def zipped(files: Files, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tarred(files: Files, mode: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def seven_zipped(files: Files) -> bytes:
    buffer = io.BytesIO()
    with py7zr.SevenZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(content, name)
    return buffer.getvalue()


def below(folder: str, files: Files) -> Files:
    return {folder + name: content for name, content in files.items()}


def unpacked(name: str, files: Files, into: str = "") -> Files:
    """The files of a download in which the archive `name` is replaced by its content."""
    with zipfile.ZipFile(io.BytesIO(files[name])) as archive:
        content = {f"{into}{info.filename}": archive.read(info) for info in archive.infolist() if not info.is_dir()}
    return {**{other: files[other] for other in files if other != name}, **content}


def on_a_mac(files: Files) -> Files:
    left = {".DS_Store": b"\0\0\0\1Bud1", "__MACOSX/._.DS_Store": b"\0\5\x16\7"}
    return {**files, **left, **{f"__MACOSX/._{name}": b"\0\5\x16\7" for name in files}}


def all_unpacked(files: Files) -> Files:
    return unpacked("images.zip", unpacked("train.csv.zip", files))


def in_folders(files: Files) -> Files:
    return unpacked("images.zip", unpacked("train.csv.zip", files, "train.csv/"), "images/")


# What lies in the directory of downloads, made of the files of the download.
READ: dict[str, Callable[[Files], Files]] = {
    "as downloaded": lambda files: {f"{ID}.zip": zipped(files)},
    "a top folder": lambda files: {f"{ID}.zip": zipped(below(f"{ID}/", files))},
    "folders of an absolute path": lambda files: {f"{ID}.zip": zipped(below("home/me/Downloads/leaf/", files))},
    "./ before names": lambda files: {f"{ID}.zip": zipped(below("./", files))},
    "a top folder, by the Finder": lambda files: {f"{ID}.zip": zipped(on_a_mac(below("leaf/", files)))},
    "names with backslashes": lambda files: {f"{ID}.zip": zipped(below("leaf\\data\\", files))},
    "Windows' hidden files": lambda files: {f"{ID}.zip": zipped({**files, "Thumbs.db": b"x", "desktop.ini": b"x"})},
    "names in capitals": lambda files: {f"{ID}.zip": zipped({name.upper(): files[name] for name in files})},
    "zipped twice": lambda files: {f"{ID}.zip": zipped({f"{ID}.zip": zipped(files)})},
    "named twice": lambda files: {f"{ID}.zip.zip": zipped(files)},
    "renamed by a browser": lambda files: {f"{ID} (1).zip": zipped(files)},
    "renamed by Windows": lambda files: {f"{ID} - Copy.zip": zipped(files)},
    "its suffix in capitals": lambda files: {f"{ID}.ZIP": zipped(files)},
    "a tar named zip": lambda files: {f"{ID}.zip": tarred(files, "w")},
    "a tar.gz named zip": lambda files: {f"{ID}.zip": tarred(below("./", files), "w:gz")},
    "a 7z named zip": lambda files: {f"{ID}.zip": seven_zipped(files)},
    "a zip named 7z": lambda files: {f"{ID}.7z": zipped(files)},
    "a tar": lambda files: {f"{ID}.tar": tarred(below(f"{ID}/", files), "w")},
    "a tar.gz": lambda files: {f"{ID}.tar.gz": tarred(files, "w:gz")},
    "a 7z": lambda files: {f"{ID}.7z": seven_zipped(below(f"{ID}/", files))},
    "compressed by bzip2": lambda files: {f"{ID}.zip": zipped(files, zipfile.ZIP_BZIP2)},
    "compressed by LZMA": lambda files: {f"{ID}.zip": zipped(files, zipfile.ZIP_LZMA)},
    "a folder": lambda files: below(f"{ID}/", files),
    "a folder of the Finder": lambda files: below(f"{ID}/", {**files, ".DS_Store": b"x", "._train.csv.zip": b"x"}),
    "a folder with a folder": lambda files: below(f"{ID}/{ID}/", files),
    "the published layout": lambda files: {f"{ID}/{ID}.zip": zipped(files)},
    "the published layout, unpacked": lambda files: below(f"{ID}/raw/", files),
    "archives in it unpacked beside each other": lambda files: below(f"{ID}/", all_unpacked(files)),
    "archives in it unpacked to folders": lambda files: below(f"{ID}/", in_folders(files)),
    "archives in it unpacked, zipped": lambda files: {f"{ID}.zip": zipped(below("leaf/", in_folders(files)))},
    "one of them unpacked": lambda files: below(f"{ID}/", unpacked("images.zip", files)),
}  # fmt: skip


def multipart(content: bytes) -> bytes:
    """The last part of an archive in two, by its last record."""
    end = content.rindex(b"PK\5\6")
    return content[:end] + struct.pack("<4s4H", b"PK\5\6", 1, 1, 2, 2) + content[end + 12 :]


def with_flags(content: bytes, flags: int, method: int) -> bytes:
    """All entries with other flags and another method."""
    data = bytearray(content)
    position = data.find(b"PK\1\2")
    while position >= 0:
        struct.pack_into("<HH", data, position + 8, flags, method)
        local = struct.unpack_from("<I", data, position + 42)[0]
        struct.pack_into("<HH", data, local + 6, flags, method)
        position = data.find(b"PK\1\2", position + 4)
    return bytes(data)


NAMED: dict[str, tuple[Callable[[Files], Files], str]] = {
    "a login page": (
        lambda files: {f"{ID}.zip": b"\n<!DOCTYPE html><html><head><title>Sign in | Kaggle"},
        "is a web page and no archive, perhaps of a login: log in to Kaggle, and download it again",
    ),
    "an error of a server": (
        lambda files: {f"{ID}.zip": b'{"code":403,"message":"You must accept this competition\'s rules"}'},
        "is a JSON text and no archive",
    ),
    "a pointer of Git LFS": (
        lambda files: {f"{ID}.zip": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"},
        "is only a pointer of Git LFS: fetch the file itself with `git lfs pull`",
    ),
    "a RAR": (lambda files: {f"{ID}.zip": b"Rar!\x1a\7\1\0" + bytes(99)}, "is a RAR archive: pack its content"),
    "cut off": (lambda files: {f"{ID}.zip": zipped(files)[:-60]}, "is not a complete zip archive"),
    "empty": (lambda files: {f"{ID}.zip": b""}, "is not a complete zip archive"),
    "encrypted": (
        lambda files: {f"{ID}.zip": with_flags(zipped(files), 1, 8)},
        "is encrypted; unpack it with its password",
    ),
    "large, by Windows": (
        lambda files: {f"{ID}.zip": with_flags(zipped(files), 0, 9)},
        "unpack it, and pack it with another program, such as 7-Zip",
    ),
    "the last of several parts": (
        lambda files: {f"{ID}.zip": multipart(zipped(files))},
        "is one part of an archive in several: join them with `zip -s 0",
    ),
    "parts of 7-Zip": (
        lambda files: {f"{ID}.zip.001": zipped(files)[:99], f"{ID}.zip.002": zipped(files)[99:]},
        f"{ID}.zip.001 is one part of an archive in several",
    ),
    "still downloading": (lambda files: {f"{ID}.zip.crdownload": b"PK"}, "is not completely downloaded yet"),
    "two copies": (
        lambda files: {f"{ID} (1).zip": zipped(files), f"{ID} (2).zip": zipped(files)},
        f"rename the one to use to {ID}.zip",
    ),
    "incomplete": (
        lambda files: {f"{ID}.zip": zipped({"images.zip": files["images.zip"]})},
        "the download has no file 'train.csv.zip', nor 'train.csv' from it; is it complete?",
    ),
}  # fmt: skip


def put(folder: Path, files: Files) -> str:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return str(folder)


@pytest.fixture
def files(packs: Path) -> Files:
    with zipfile.ZipFile(packs / ID / "raw.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture
def prepare(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[list[Files]], int]]:
    """Prepare copies of the competition, leaf-0 and so on, from these downloads with one command."""

    def call(downloads: list[Files]) -> int:
        command = ["prepare", "--skip-verification", "--raw-dir", str(tmp_path / "raw"), "--store", store.root]
        for number, download in enumerate(downloads):
            copy_of(ID, tmp_path / "competitions" / f"leaf-{number}")
            put(tmp_path / "raw", {name.replace(ID, f"leaf-{number}"): download[name] for name in download})
            command += ["-c", f"leaf-{number}"]
        monkeypatch.setenv("MLEBENCH_COMPETITIONS", str(tmp_path / "competitions"))
        get_settings.cache_clear()
        return main(command)

    yield call
    get_settings.cache_clear()


def prepared(store: Store, competition_id: str) -> dict[str, str]:
    key = committed_key(store, Dataset("v1", competition_id))
    folder = store.local("prepared", "v1", competition_id, str(key))
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for part in ("public", "private")
        for path in (folder / part).rglob("*")
        if path.is_file()
    }


def test_it_is_read_and_makes_the_same_files(
    store: Store, files: Files, prepare: Callable[[list[Files]], int], capfd: pytest.CaptureFixture[str]
) -> None:
    code = prepare([pack(files) for pack in READ.values()])
    assert code == 0, capfd.readouterr()
    expected = prepared(store, "leaf-0")
    assert len(expected) > 40
    for number, how in enumerate(READ):
        assert prepared(store, f"leaf-{number}") == expected, how


def test_it_is_named_with_the_remedy(
    files: Files, prepare: Callable[[list[Files]], int], capfd: pytest.CaptureFixture[str]
) -> None:
    assert prepare([pack(files) for pack, _ in NAMED.values()]) == 1
    out, err = capfd.readouterr()
    assert "Traceback" not in out + err
    for number, (how, (_, remedy)) in enumerate(NAMED.items()):
        (said,) = (line for line in out.splitlines() if line.strip().startswith(f"failed  leaf-{number}: "))
        assert remedy.replace(ID, f"leaf-{number}") in said, how


def test_a_file_is_found_whatever_the_encoding_of_its_name(tmp_path: Path) -> None:
    """macOS takes letters with accents apart; zip programs do not always say that names are UTF-8."""
    name, content = "bilder/m\u00fcller.png", b"x"
    for number, stored in enumerate((name, unicodedata.normalize("NFD", name), name.encode().decode("cp437"))):
        archive = tmp_path / f"{number}.zip"
        archive.write_bytes(zipped({stored: content, "other.csv": b"a\n"}))
        raw = Download.open(str(archive))
        assert raw.read_bytes(name) == content
        assert name in raw


def test_a_file_that_was_zipped_is_found(tmp_path: Path) -> None:
    """Kaggle serves large single files so."""
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "train.csv.zip").write_bytes(zipped({"train.csv": b"id\n1\n"}))
    (tmp_path / "raw" / "test.csv").write_bytes(b"id\n2\n")
    raw = Download.open(str(tmp_path / "raw"))
    assert [raw.read_csv(name)["id"].tolist() for name in ("train.csv", "test.csv")] == [[1], [2]]
    member = raw.file("train.csv")
    assert raw.view(member.archive).read_bytes(member.name) == b"id\n1\n"


def test_a_folder_that_was_zipped_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(zipped({"train.zip": zipped({"1.png": b"x"}), "train.csv": b"a\n"}))
    raw = Download.open(str(tmp_path / "x.zip"))
    for find in (lambda: raw.glob("train/*.png"), lambda: raw.names("train"), lambda: list(raw.tree("train"))):
        with pytest.raises(
            DownloadError, match=r"train\.zip instead of a folder train/; unpack it, and give the folder"
        ):
            find()
    assert raw.glob("test/*.png") == []


def test_names_below_a_common_folder_stay_as_they_are(tmp_path: Path) -> None:
    """A competition may have such a folder, and name it."""
    (tmp_path / "x.zip").write_bytes(zipped({"data/train.csv": b"a\n", "data/images/1.png": b"x"}))
    raw = Download.open(str(tmp_path / "x.zip"))
    assert raw.glob("*.csv") == ["train.csv"]
    assert raw.read_bytes("data/train.csv") == raw.read_bytes("train.csv") == b"a\n"
    assert raw.names("data") == ["data/images/1.png", "data/train.csv"]
    assert raw.names("images") == ["images/1.png"]


def test_the_published_archive_is_read_exactly_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(zipped({"images/.DS_Store": b"x", "images/1.png": b"x", "train.csv": b"a\n"}))
    assert Download.open(str(tmp_path / "x.zip")).names("images") == ["images/1.png"]
    assert Download.open(str(tmp_path / "x.zip"), exact=True).names("images") == ["images/.DS_Store", "images/1.png"]


def test_what_is_missing_is_not_taken_for_unpacked(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(zipped({"train.csv": b"a\n"}))
    raw = Download.open(str(tmp_path / "x.zip"))
    with pytest.raises(DownloadError, match=r"no file 'train\.zip'; is it complete"):
        raw.archive("train.zip").glob("train/*.png")
    with pytest.raises(DownloadError, match=r"no file 'train\.zip', nor 'train/1\.png' from it; is it complete"):
        raw.archive("train.zip").file("train/1.png")
