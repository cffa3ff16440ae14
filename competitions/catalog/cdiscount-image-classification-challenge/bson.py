"""Split BSON files into documents without decoding them.

A BSON file is a plain concatenation of documents. A document consists of its length (int32, little-endian, including
these four bytes), elements (type, name, value) and a zero byte (https://bsonspec.org/spec.html). To split a file, only
the lengths are read; to read or drop an element, only the types and names at the top level. Images are never decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from competitions.errors import DownloadError

_BLOCK = 16 << 20
_LARGEST = 16 << 20  # MongoDB's limit for a document
_INT32, _INT64 = 0x10, 0x12
_FIXED = {0x01: 8, 0x07: 12, 0x08: 1, 0x09: 8, 0x0A: 0, _INT32: 4, 0x11: 8, _INT64: 8, 0x13: 16}
_EXTRA = {0x02: 4, 0x03: 0, 0x04: 0, 0x05: 5, 0x0D: 4}  # bytes in addition to the value's own length


def documents(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the documents of a file, in bounded memory. Raises `DownloadError` if it ends within a document."""
    rest = b""
    while block := stream.read(_BLOCK):
        buffer = rest + block
        start = 0
        while len(buffer) - start >= 4:
            size = int.from_bytes(buffer[start : start + 4], "little")
            if not 5 <= size <= _LARGEST:
                raise DownloadError(f"the BSON file is damaged: a document of {size} bytes; download it again")
            if start + size > len(buffer):
                break
            yield buffer[start : start + size]
            start += size
        rest = buffer[start:]
    if rest:
        raise DownloadError("the BSON file is cut off within a document; download it again")


def integer(document: bytes, name: str) -> int:
    """The integer `name` (32 or 64 bits) at the top level. Raises `DownloadError` if there is none."""
    kind, _, value, stop = _element(document, name)
    if kind not in (_INT32, _INT64):
        raise DownloadError(f"element {name!r} of a BSON document is not an integer")
    return int.from_bytes(document[value:stop], "little", signed=True)


def without(document: bytes, name: str) -> bytes:
    """The document without the element `name` of the top level. Raises `DownloadError` if there is none."""
    _, start, _, stop = _element(document, name)
    return (len(document) - (stop - start)).to_bytes(4, "little") + document[4:start] + document[stop:]


def _element(document: bytes, name: str) -> tuple[int, int, int, int]:
    """Return the type of the element `name`, and the offsets of its start, of its value and of its end."""
    wanted_name = name.encode()
    start = 4
    while kind := document[start]:
        end = document.index(0, start + 1)
        value = end + 1
        if kind in _FIXED:
            stop = value + _FIXED[kind]
        elif kind in _EXTRA:
            stop = value + _EXTRA[kind] + int.from_bytes(document[value : value + 4], "little")
        else:
            raise DownloadError(f"a BSON document contains an element of the unexpected type {kind:#04x}")
        if document[start + 1 : end] == wanted_name:
            return kind, start, value, stop
        start = stop
    raise DownloadError(f"a BSON document lacks the element {name!r}")
