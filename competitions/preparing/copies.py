"""Training images that show the same picture as a test image, whatever their size, quality and brightness.

A hash of what pictures look like from afar cannot tell leaves on a plain ground from one another. Pictures are
therefore compared by their fine detail, in all places that have any: it is lost in neither scaling nor compression, and
another leaf of the same outline has its veins elsewhere. Mirrored or turned pictures, and those that were cropped by
more than about a hundredth of their width, are not found: missing a copy costs less than taking many pictures for one.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from competitions.preparing.download import Download

    Pictures = NDArray[np.float32]
    """Details of pictures, of shape (n, 64, 64)."""

_SIDE = 64
_CELL = 8  # pixels of a side of the places in which pictures are compared
_DRAFT = 4 * _SIDE
_ALIKE = 0.75  # the least correlation of the details of copies
_ALIKE_IN_CELLS = 0.65  # and of nine tenths of their cells; in different pictures some cells always differ
_DETAIL = 1.0  # of 255: the root mean square of a cell from which on it is compared; what is below may be noise
_CELLS = 4  # with fewer of them, there is nothing to compare
_AT_ONCE = 512


def without_copies(train: pd.DataFrame, test: pd.DataFrame, download: Download, name: str) -> pd.DataFrame:
    """The training rows whose image is not that of a test row.

    `name` is the name of a row's image, as a pattern of `str.format` that is filled with the first column. Files that
    are no image, and pictures without any detail, are copies only if they have the same bytes.
    """
    import numpy as np

    known, shown = (_Images(download, map(name.format, part.iloc[:, 0])) for part in (train, test))
    copied = np.isin(known.digests, shown.digests)
    if len(shown.digests):
        wanted = _unit(_details(shown.small))
        for start, details in known.details():
            close = _unit(details) @ wanted.T >= _ALIKE
            for row in np.flatnonzero(close.any(axis=1)):
                if not copied[start + row]:
                    others = _details(shown.small[close[row]])
                    copied[start + row] = same_picture(details[row], others).any()
    return train[~copied]


class _Images:
    """The small grey pictures of shape (n, 64, 64) of images, 4 kB each, and a digest of the bytes of each file."""

    def __init__(self, download: Download, names: Iterable[str]) -> None:
        import numpy as np

        found = [(_small(content), hashlib.sha256(content).hexdigest()) for content in map(download.read_bytes, names)]
        self.small = np.array([small for small, _ in found], dtype=np.uint8).reshape(-1, _SIDE, _SIDE)
        self.digests = np.array([digest for _, digest in found], dtype=str)

    def details(self) -> Iterator[tuple[int, Pictures]]:
        """Yield (number of the first, details) of some pictures at a time."""
        for start in range(0, len(self.small), _AT_ONCE):
            yield start, _details(self.small[start : start + _AT_ONCE])


def same_picture(one: Pictures, others: Pictures) -> NDArray[np.bool_]:
    """Which of the `others`, of shape (n, 64, 64), show the picture `one`: details correlate in almost all cells."""
    import numpy as np

    ours, theirs = _cells(one[None]), _cells(others)
    energy = np.sqrt(np.maximum((ours**2).mean(axis=2), (theirs**2).mean(axis=2)))
    norms = np.linalg.norm(ours, axis=2) * np.linalg.norm(theirs, axis=2)
    correlation = (ours * theirs).sum(axis=2) / np.maximum(norms, 1e-9)
    compared = energy > _DETAIL
    unlike = (compared & (correlation < _ALIKE_IN_CELLS)).sum(axis=1)
    return (compared.sum(axis=1) >= _CELLS) & (10 * unlike <= compared.sum(axis=1))


def _small(content: bytes) -> NDArray[np.uint8]:
    import numpy as np
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(content)) as image:
            image.draft("L", (_DRAFT, _DRAFT))  # a JPEG need not be decoded in full
            return np.asarray(image.convert("L").resize((_SIDE, _SIDE), Image.Resampling.BOX))
    except (UnidentifiedImageError, OSError):
        return np.zeros((_SIDE, _SIDE), np.uint8)


def _details(small: NDArray[np.uint8]) -> Pictures:
    """What is left of pictures without their mean over 5 x 5 pixels."""
    import numpy as np

    pixels = small.astype(np.float32)
    means = pixels
    for axis in (1, 2):
        around = np.pad(means, [(2, 2) if each == axis else (0, 0) for each in range(3)], mode="edge")
        means = np.lib.stride_tricks.sliding_window_view(around, 5, axis=axis).mean(axis=-1, dtype=np.float32)
    return pixels - means


def _unit(details: Pictures) -> NDArray[np.float32]:
    import numpy as np

    flat = details.reshape(len(details), -1)
    return flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), np.float32(1e-6))


def _cells(details: Pictures) -> Pictures:
    """The pixels of each cell, in the shape (n, cells, pixels)."""
    count = _SIDE // _CELL
    return details.reshape(-1, count, _CELL, count, _CELL).swapaxes(2, 3).reshape(-1, count**2, _CELL**2)
