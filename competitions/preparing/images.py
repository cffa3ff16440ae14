"""Images that are found by what they are: near duplicates on both sides, and the bytes of public files.

Whoever has Kaggle's files can find a test image among them by a hash of its bytes. `encode_anew` changes these; the
picture stays recognisable, so this is no protection from a comparison of what the images show. `fingerprints` are such
a comparison, by which training images that show the same as a test image are left out.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from competitions.preparing.declaration import Archive, Content, Copy, Derived

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from competitions.preparing.declaration import Operation, Tree
    from competitions.preparing.download import Download, Member

PARAMETER = "test_image_quality"
"""The parameter of prepare.py that asks for it: a quality of JPEG from 1 to 95; null leaves images as they are."""


_SIDE = 16  # of the small picture from which a fingerprint is made
_BITS = _SIDE * (_SIDE - 1)
_FLAT = 2  # of 255: neighbouring pixels that differ less count as equal
_NEAR = 12  # bits of _BITS in which copies differ at most; other pictures differ in about half
_DRAFT = 64


def fingerprints(download: Download, names: Iterable[str]) -> NDArray[np.float32]:
    """A difference hash of 240 bits for each image, as -1 and 1 in the shape (n, 240).

    It says which of two neighbouring pixels is brighter once the picture is reduced to 16 x 16, so copies that were
    scaled or compressed anew differ in a few bits at most. Files that are no image have a hash of their bytes.
    """
    import numpy as np

    codes = [_fingerprint(download.read_bytes(name)) for name in names]
    return np.array(codes, dtype=np.float32).reshape(-1, _BITS) * 2 - 1


def without_copies(train: pd.DataFrame, test: pd.DataFrame, download: Download, name: str) -> pd.DataFrame:
    """The training rows whose image is not that of a test row: their fingerprints differ in more than 12 bits.

    `name` is the name of a row's image, as a pattern of `str.format` that is filled with the first column.
    """
    known, shown = (fingerprints(download, map(name.format, part.iloc[:, 0])) for part in (train, test))
    if not len(shown) or not len(known):
        return train
    return train[(known @ shown.T).max(axis=1) < _BITS - 2 * _NEAR]


def _fingerprint(content: bytes) -> NDArray[np.bool_]:
    import numpy as np
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(content)) as image:
            image.draft("L", (_DRAFT, _DRAFT))  # a JPEG need not be decoded in full
            small = np.asarray(image.convert("L").resize((_SIDE, _SIDE), Image.Resampling.BOX), dtype=np.int16)
        return (small[:, 1:] > small[:, :-1] + _FLAT).ravel()
    except (UnidentifiedImageError, OSError):
        digest = hashlib.blake2b(content, digest_size=_BITS // 8).digest()
        return np.unpackbits(np.frombuffer(digest, dtype=np.uint8)).astype(bool)


Encode = Callable[["Download", str, str, int], Iterator[bytes]]


def encode_anew(tree: Tree, prefix: str, encode: Encode, download: Download, quality: int | None) -> None:
    """Have all images whose path begins with `prefix`, or that are in an archive there, encoded with this quality.

    `encode` is `encoded`, as prepare.py imports it: workers find it there.
    """
    if quality is None:
        return
    for path, operation in tree.operations.items():
        if path.startswith(prefix):
            tree.operations[path] = _anew(operation, encode, download, quality)


def encoded(download: Download, archive: str, name: str, quality: int) -> Iterator[bytes]:
    """An image of the download, encoded with a quality of JPEG, in the format that it had; without its metadata.

    Deterministic for a version of Pillow. A format without loss gets the pixels that JPEG leaves.
    """
    from PIL import Image

    with download.view(archive).open_file(name) as file, Image.open(file) as image:
        image.load()
    lossy = _saved(image if image.mode in ("L", "RGB", "CMYK") else image.convert("RGB"), "JPEG", quality=quality)
    if image.format == "JPEG":
        yield lossy
        return
    with Image.open(io.BytesIO(lossy)) as again:
        yield _saved(again.convert(image.mode), str(image.format))


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
