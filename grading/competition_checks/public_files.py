"""Public files that belong to an id, such as images and sounds, also those in zip archives."""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import IO

IMAGES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp")


@dataclass(frozen=True)
class PublicFile:
    """A public file, or a member of a public archive."""

    name: str
    """Path below public/; archives count as folders."""
    size: int
    changed: float
    """Time that the file system or the archive states, as a number that grows with it."""
    path: Path
    member: str | None = None
    place: int = 0
    """Place among the members of the archive."""

    @property
    def is_image(self) -> bool:
        """Whether the name is one of an image."""
        return self.name.lower().endswith(IMAGES)

    def shape(self) -> tuple[int, int] | None:
        """Width and height of an image; None if it is none."""
        if not self.is_image:
            return None
        from PIL import Image

        try:
            with self.open() as file, Image.open(file) as image:
                return image.size
        except Exception:  # Pillow raises many kinds of errors for files that are broken or huge
            return None

    def open(self) -> IO[bytes]:
        """The content, to read."""
        return self.path.open("rb") if self.member is None else _archive(self.path).open(self.member)

    def read(self) -> bytes:
        """The content."""
        with self.open() as file:
            return file.read()


@lru_cache(maxsize=8)  # the directory of an archive is read once for all of its members
def _archive(path: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(path)


def public_files(folder: Path) -> list[PublicFile]:
    """All files below a folder, in the order of their names."""
    return sorted(_files(folder), key=lambda file: file.name)


def _files(folder: Path) -> Iterator[PublicFile]:
    for path in folder.rglob("*"):
        if not path.is_file():
            continue
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".zip" and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for place, info in enumerate(archive.infolist()):
                    if not info.is_dir():
                        changed = float("".join(f"{part:02}" for part in info.date_time))
                        yield PublicFile(f"{name}/{info.filename}", info.file_size, changed, path, info.filename, place)
        else:
            stat = path.stat()
            yield PublicFile(name, stat.st_size, stat.st_mtime, path)


def test_files(files: list[PublicFile], ids: Collection[str]) -> dict[str, PublicFile]:
    """The files of test rows by id: those of training rows may have the same names."""
    return files_by_id([file for file in files if not _is_training(file)], ids)


def training_files(files: list[PublicFile], of_test: Mapping[str, PublicFile]) -> list[PublicFile]:
    """The files that are not of the test set, which may be there twice: as files and in an archive."""
    names = {PurePosixPath(file.name).name for file in of_test.values()}
    return [file for file in files if _is_training(file) or PurePosixPath(file.name).name not in names]


def files_by_id(files: list[PublicFile], ids: Collection[str]) -> dict[str, PublicFile]:
    """The file of each id: the one with its name, with or without a suffix."""
    by_name: dict[str, PublicFile] = {}
    for file in files:
        path = PurePosixPath(file.name)
        for name in (file.name, path.name, path.name.partition(".")[0]):
            by_name.setdefault(name, file)
    return {name: by_name[name] for name in ids if name in by_name}


def _is_training(file: PublicFile) -> bool:
    return "train" in file.name.lower()
