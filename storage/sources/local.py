"""Existing downloads: a directory with the archive of each competition, or with its unpacked content."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from common.units import listed
from competitions.errors import DownloadError
from competitions.preparing.archives.names import ARCHIVE_SUFFIXES
from storage.sources.source import Downloadable, Report

_SUFFIX = "|".join(map(re.escape, ARCHIVE_SUFFIXES))
# What browsers and systems add to the name of a second copy: " (1)", " 2", " copy", " - Copy (2)".
_COPY = r"(?: - copy| copy| ?\(\d+\)| \d{1,2})*"
_UNFINISHED = (".crdownload", ".part", ".partial", ".download", ".opdownload", ".tmp", ".icloud")
_OF_A_STORE = {"download.json", "partial", "new"}
"""What a store has beside an archive, and keeps without it (`storage.sources.acquire`)."""
_PART = re.compile(r"\.(z?\d{2,3}|part\d+\.\w+)\Z")


class Local:
    """Provides the downloads in a directory.

    For `leaf-classification` these are, in this order: `leaf-classification.zip`; the published tool's
    `leaf-classification/leaf-classification.zip` and `leaf-classification/raw/`; the same archive under a name that a
    browser has given it, or in another format; a folder `leaf-classification/`.
    """

    name = "local"

    def __init__(self, directory: Path) -> None:
        self.directory = directory.expanduser()

    def version(self, competition: Downloadable) -> str | None:
        """Size and modification time of the file, or a hash of those of a folder's files; None if there is none."""
        if not self.at_hand(competition):
            return None
        path = self.fetch(competition, self.directory)
        return _folder_version(path) if path.is_dir() else _file_version(path)

    def at_hand(self, competition: Downloadable) -> bool:
        """Whether the directory has it."""
        with contextlib.suppress(DownloadError):
            return self.fetch(competition, self.directory).exists()
        return False

    def fetch(self, competition: Downloadable, folder: Path, report: Report = lambda _: None) -> Path:
        """The path of the archive, or of the folder with its content. Nothing is copied."""
        if not self.directory.is_dir():
            raise DownloadError(f"--raw-dir {self.directory} is not a directory")
        own = self.directory / competition.id
        for archive in (self.directory / f"{competition.id}.zip", own / f"{competition.id}.zip"):
            if archive.is_file():
                return archive
        if (own / "raw").is_dir() and any((own / "raw").iterdir()):
            return own / "raw"
        name = re.compile(rf"{re.escape(competition.id)}{_COPY}(?:{_SUFFIX}){_COPY}(?:\.zip)?", re.IGNORECASE)
        copies = sorted(path for path in _files(self.directory) if name.fullmatch(path.name))
        if len(copies) > 1:
            raise DownloadError(
                f"{self.directory} has {listed([path.name for path in copies])}; rename the one to use to "
                f"{competition.id}.zip"
            )
        if copies:
            return copies[0]
        if own.is_dir() and _is_download(own):
            return own
        raise DownloadError(
            f"{self.directory / competition.id}.zip does not exist; put the download of {competition.id} there"
            f"{self._hint(competition.id)}"
        ).of_kind("missing")

    def _hint(self, competition_id: str) -> str:
        """What there is of a download that is not complete."""
        for path in _files(self.directory):
            if competition_id.lower() in path.name.lower():
                if path.name.endswith(_UNFINISHED):
                    return f". {path.name} is not completely downloaded yet"
                if _PART.search(path.name):
                    return (
                        f". {path.name} is one part of an archive in several: join them with `7z x`, and pack it again"
                    )
        return ""


def _is_download(folder: Path) -> bool:
    """Whether the folder has the content of a download. Those of a store, and a competition's own, have other files."""
    names = {path.name for path in folder.iterdir()}
    return bool(names - _OF_A_STORE) and not names & {"prepared", "competition.yaml"}


def _file_version(path: Path) -> str:
    stat = path.stat()
    return f"{stat.st_size}-{stat.st_mtime_ns}"


def _folder_version(folder: Path) -> str:
    found = []
    for parent, _, names in os.walk(folder, followlinks=True):
        for name in names:
            with contextlib.suppress(OSError):  # a link to nothing
                found.append(f"{parent.removeprefix(str(folder))}/{name} {_file_version(Path(parent, name))}")
    return hashlib.sha256(os.fsencode("\0".join(sorted(found)))).hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    """The files directly in a folder, sorted; nothing if there is no such folder."""
    return (path for path in sorted(folder.iterdir()) if path.is_file()) if folder.is_dir() else iter(())
