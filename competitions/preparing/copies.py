"""Training images that show the same picture as a test image, whatever their size, quality and brightness.

A perceptual hash of whole pictures cannot distinguish leaves on a plain background. Pictures are therefore compared by
their fine detail, in all cells that have any: scaling and compression keep it, and another leaf of the same outline has
its veins elsewhere. Mirrored or rotated pictures, and those that were cropped by more than about a hundredth of their
width, are not found, because missing a copy costs less than taking many pictures for copies.
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

_SIDE = 64  # pixels of a side of a small grey picture
_CELL = 8  # pixels of a side of the cells in which pictures are compared
_DRAFT = 4 * _SIDE  # pixels of a side
_MIN_CORRELATION = 0.75  # of the details of copies
_MIN_CELL_CORRELATION = 0.65  # of nine tenths of the cells of copies; in different pictures some cells always differ
_MIN_DETAIL = 1.0  # root mean square, of 255, of a cell that is compared; lower values may be noise
_MIN_CELLS = 4  # pictures with fewer such cells are not compared
_BATCH_IMAGES = 512


def without_copies(train: pd.DataFrame, test: pd.DataFrame, download: Download, name: str) -> pd.DataFrame:
    """The training rows whose image is not a copy of the image of a test row.

    `name` is the name of a row's image, as a pattern of `str.format` that is filled with the first column. Files that
    are not images, and pictures without any detail, are copies only if they have the same bytes.
    """
    train_files, test_files = (
        (download.read_bytes(name.format(row)) for row in part.iloc[:, 0]) for part in (train, test)
    )
    return train[~copied(train_files, test_files)]


def copied(images: Iterable[bytes], others: Iterable[bytes]) -> NDArray[np.bool_]:
    """Which of some images are copies of one of the others, given the contents of their files."""
    import numpy as np

    own, other_images = _Images(images), _Images(others)
    found = np.isin(own.digests, other_images.digests)
    if len(other_images.digests):
        other_details = _unit(_details(other_images.small))
        for start, details in own.details():
            is_close = _unit(details) @ other_details.T >= _MIN_CORRELATION
            for row in np.flatnonzero(is_close.any(axis=1)):
                if not found[start + row]:
                    close_details = _details(other_images.small[is_close[row]])
                    found[start + row] = same_picture(details[row], close_details).any()
    return found


class _Images:
    """The small grey pictures of shape (n, 64, 64) of images, 4 kB each, and a digest of the bytes of each file."""

    def __init__(self, contents: Iterable[bytes]) -> None:
        import numpy as np

        hashed = [(_small(content), hashlib.sha256(content).hexdigest()) for content in contents]
        self.small = np.array([picture for picture, _ in hashed], dtype=np.uint8).reshape(-1, _SIDE, _SIDE)
        self.digests = np.array([digest for _, digest in hashed], dtype=str)

    def details(self) -> Iterator[tuple[int, Pictures]]:
        """Yield (number of the first, details) of some pictures at a time."""
        for start in range(0, len(self.small), _BATCH_IMAGES):
            yield start, _details(self.small[start : start + _BATCH_IMAGES])


def same_picture(one: Pictures, others: Pictures) -> NDArray[np.bool_]:
    """Which of the `others`, of shape (n, 64, 64), show the picture `one`: details correlate in almost all cells."""
    import numpy as np

    cells, other_cells = _cells(one[None]), _cells(others)
    energy = np.sqrt(np.maximum((cells**2).mean(axis=2), (other_cells**2).mean(axis=2)))
    norms = np.linalg.norm(cells, axis=2) * np.linalg.norm(other_cells, axis=2)
    correlation = (cells * other_cells).sum(axis=2) / np.maximum(norms, 1e-9)
    compared = energy > _MIN_DETAIL
    differing_cells = (compared & (correlation < _MIN_CELL_CORRELATION)).sum(axis=1)
    return (compared.sum(axis=1) >= _MIN_CELLS) & (10 * differing_cells <= compared.sum(axis=1))


def _small(content: bytes) -> NDArray[np.uint8]:
    import numpy as np
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content)) as image:
            image.draft("L", (_DRAFT, _DRAFT))  # a JPEG need not be decoded in full
            return np.asarray(image.convert("L").resize((_SIDE, _SIDE), Image.Resampling.BOX))
    except (OSError, Image.DecompressionBombError):
        return np.zeros((_SIDE, _SIDE), np.uint8)


def _details(pictures: NDArray[np.uint8]) -> Pictures:
    """Pictures minus their mean over 5 x 5 pixels."""
    import numpy as np

    pixels = pictures.astype(np.float32)
    means = pixels
    for axis in (1, 2):
        padded = np.pad(means, [(2, 2) if dimension == axis else (0, 0) for dimension in range(3)], mode="edge")
        means = np.lib.stride_tricks.sliding_window_view(padded, 5, axis=axis).mean(axis=-1, dtype=np.float32)
    return pixels - means


def _unit(details: Pictures) -> NDArray[np.float32]:
    import numpy as np

    flat = details.reshape(len(details), -1)
    return flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), np.float32(1e-6))


def _cells(details: Pictures) -> Pictures:
    """The pixels of each cell, in the shape (n, cells, pixels)."""
    count = _SIDE // _CELL
    tiles = details.reshape(-1, count, _CELL, count, _CELL).swapaxes(2, 3)
    return tiles.reshape(-1, count**2, _CELL**2)
