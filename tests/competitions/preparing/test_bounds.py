"""What an archive may expand to: bounded by the size of the published download, whatever its directory says."""

from __future__ import annotations

import gzip
import io
import resource
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import py7zr
import pytest

from competitions import registry
from competitions.errors import DownloadError
from competitions.preparing.archives.containers import open_container
from competitions.preparing.archives.zips import ZipContainer
from competitions.preparing.download import Download

ZEROS = bytes(4 << 20)
MOST = 1 << 20


def zipped(path: Path) -> Path:
    with zipfile.ZipFile(path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("small.csv", b"id\n1\n")
        archive.writestr("cell.csv", ZEROS)
    return path / "a.zip"


def seven_zipped(path: Path) -> Path:
    with py7zr.SevenZipFile(path / "a.7z", "w") as archive:
        archive.writestr(ZEROS, "cell.csv")
    return path / "a.7z"


def tarred(path: Path) -> Path:
    info = tarfile.TarInfo("cell.csv")
    info.size = len(ZEROS)
    with tarfile.open(path / "a.tar.gz", "w:gz") as archive:
        archive.addfile(info, io.BytesIO(ZEROS))
    return path / "a.tar.gz"


def tarred_with_zeros_behind(path: Path) -> Path:
    """The member is small, and what follows the archive's end is not."""
    info = tarfile.TarInfo("cell.csv")
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        archive.addfile(info, io.BytesIO(b""))
    (path / "b.tar.gz").write_bytes(gzip.compress(plain.getvalue() + ZEROS))
    return path / "b.tar.gz"


def sparse(path: Path) -> Path:
    """An uncompressed tar archive can say that most of a file is zeros."""
    info = tarfile.TarInfo("cell.csv")
    info.type, info.size = tarfile.GNUTYPE_SPARSE, 512
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[386:398], header[398:410] = b"00000000000\0", b"00000001000\0"
    header[483:495] = b"%011o\0" % len(ZEROS)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    (path / "s.tar").write_bytes(bytes(header) + b"x" * 512 + bytes(10240))
    return path / "s.tar"


KINDS: list[Callable[[Path], Path]] = [zipped, seven_zipped, tarred, tarred_with_zeros_behind, sparse]


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("nested", [False, True])
def test_an_archive_that_expands_to_more_is_refused_by_name(
    make: Callable[[Path], Path], nested: bool, tmp_path: Path
) -> None:
    path = make(tmp_path)
    name = "cell.csv" if make is not tarred_with_zeros_behind else ""
    if nested:
        with zipfile.ZipFile(tmp_path / "outer.zip", "w", zipfile.ZIP_DEFLATED) as outer:
            outer.write(path, path.name)
        download = Download.open(str(tmp_path / "outer.zip"))
        download.limit(MOST)
        with pytest.raises(DownloadError, match=rf"\A{path.name} expands to .*{name}.* download it again"):
            download.archive(path.name).names()
    else:
        with pytest.raises(DownloadError, match=rf"{path.name} expands to .*{name}.* download it again"):
            Download.open(str(path)).limit(MOST)


@pytest.mark.parametrize("make", KINDS)
def test_what_is_within_the_bound_is_read(make: Callable[[Path], Path], tmp_path: Path) -> None:
    download = Download.open(str(make(tmp_path)))
    download.limit(2 * len(ZEROS))
    assert "cell.csv" in download.names()
    with download.open_file("cell.csv") as file:
        assert len(file.read()) in (0, len(ZEROS))


def test_a_directory_is_as_large_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(ZEROS)
    Download.open(str(tmp_path)).limit(1)


@pytest.mark.parametrize("said", [1000, 1 << 19])
def test_a_member_that_is_larger_than_it_says_takes_no_more_than_it_says(said: int, tmp_path: Path) -> None:
    big = 600 << 20
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive, archive.open("x", "w") as file:
        for _ in range(big >> 20):
            file.write(bytes(1 << 20))
    content = bytearray(path.read_bytes())
    directory = content.rindex(b"PK\1\2")
    content[directory + 24 : directory + 28] = struct.pack("<I", said)
    path.write_bytes(content)
    container = open_container(str(path))
    assert isinstance(container, ZipContainer)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for read in (container.read, lambda name: b"".join(map(bytes, container.checked(name)))):
        with pytest.raises(DownloadError, match=r"x is (damaged|larger)"):
            read("x")
    with pytest.raises(zipfile.BadZipFile), container.open("x") as opened:
        opened.read()
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10 < 100 << 20


def test_the_bound_of_a_competition_is_far_from_what_real_data_expand_to() -> None:
    facts = registry.get("leaf-classification").facts
    assert facts.size_bytes is not None
    assert facts.most_bytes == 64 * facts.size_bytes + (1 << 30)
    assert registry.get("digits").facts.most_bytes is None, "of unknown size, as that of a new competition"


def test_preparing_refuses_a_download_that_expands_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    competition = registry.get("leaf-classification")
    monkeypatch.setattr("competitions.facts._EXTRA_BYTES", 0)
    monkeypatch.setattr("competitions.facts._MAX_EXPANSION", 1)
    size = (competition.facts.size_bytes or 0) + 1
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("train.csv", bytes(size))
    with pytest.raises(DownloadError, match=r"above all train\.csv"):
        competition.declare(Download.open(str(tmp_path / "a.zip")))
