"""Read NumPy's .npy files from a download, and write selected rows of an array without copying them all in memory."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from competitions.preparing.declaration import Content
from competitions.preparing.download import Download

_ROWS = 10_000  # rows written at a time


def read_array(download: Download, name: str) -> NDArray[Any]:
    """Return the array in the file `name`."""
    with download.open_file(name) as file:
        array: NDArray[Any] = np.lib.format.read_array(file)
    return array


def array_length(download: Download, name: str) -> int:
    """Return the number of rows of the array in the file `name`. Only the header is read."""
    with download.open_file(name) as file:
        old = np.lib.format.read_magic(file) == (1, 0)
        shape = (np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0)(file)[0]
    return int(shape[0])


def array_content(array: NDArray[Any], rows: NDArray[np.int64]) -> Content:
    """Return the bytes that ``numpy.save`` writes for ``array[rows]``."""
    return Content(lambda: _pieces(array, rows))


def _pieces(array: NDArray[Any], rows: NDArray[np.int64]) -> Iterator[bytes]:
    header = io.BytesIO()
    shape = (len(rows), *array.shape[1:])
    described = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, described)
    yield header.getvalue()
    for start in range(0, len(rows), _ROWS):
        yield array[rows[start : start + _ROWS]].tobytes()
