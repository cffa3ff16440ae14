"""Images that are encoded again, so that a hash of their bytes does not find them among Kaggle's files.

The picture stays recognisable, so this does not protect from comparing what the images show.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from competitions.preparing.declaration import Archive, Content, Copy, Derived

if TYPE_CHECKING:
    from competitions.preparing.declaration import Operation, Tree
    from competitions.preparing.download import Download, Member

PARAMETER = "test_image_quality"
"""The parameter of prepare.py for this: a quality of JPEG from 1 to 95; null leaves images unchanged."""

Encode = Callable[["Download", str, str, int], Iterator[bytes]]


def encode_anew(tree: Tree, prefix: str, encode: Encode, download: Download, quality: int | None) -> None:
    """Declare that all images below `prefix`, and those in archives there, are encoded with this quality.

    `encode` is the function `encoded` as prepare.py imports it, because workers look it up there.
    """
    if quality is None:
        return
    for path, operation in tree.operations.items():
        if path.startswith(prefix):
            tree.operations[path] = _anew(operation, encode, download, quality)


def encoded(download: Download, archive: str, name: str, quality: int) -> Iterator[bytes]:
    """An image of the download, encoded with a quality of JPEG, in its own format and without its metadata.

    The result is the same for the same version of Pillow. A lossless format gets the pixels after JPEG encoding.
    """
    from PIL import Image

    with download.view(archive).open_file(name) as file, Image.open(file) as image:
        image.load()
    lossy = _saved(image if image.mode in ("L", "RGB", "CMYK") else image.convert("RGB"), "JPEG", quality=quality)
    if image.format == "JPEG":
        yield lossy
        return
    with Image.open(io.BytesIO(lossy)) as decoded:
        yield _saved(decoded.convert(image.mode), str(image.format))


def _anew(operation: Operation, encode: Encode, download: Download, quality: int) -> Operation:
    if isinstance(operation, Copy):
        return Derived(encode.__name__, (*operation.member[:2], quality), operation.member.size)
    if isinstance(operation, Archive):
        entries = tuple((name, _content(entry, encode, download, quality)) for name, entry in operation.entries)
        return Archive(operation.kind, entries, operation.stored, operation.folders)
    return operation


def _content(entry: Member | Content, encode: Encode, download: Download, quality: int) -> Content:
    if isinstance(entry, Content):
        return entry
    return Content(lambda: encode(download, entry.archive, entry.name, quality))


def _saved(image: Any, kind: str, **options: Any) -> bytes:
    content = io.BytesIO()
    image.save(content, kind, **options)
    return content.getvalue()
