"""Read TFRecord files of `tf.train.Example` messages without TensorFlow.

A file is a sequence of frames: length (uint64, little-endian), CRC of the length (4 bytes), payload, CRC of the payload
(4 bytes). A payload is a protobuf message, Example { 1: Features { 1: map entry { 1: key, 2: Feature } ... } }, where
Feature is { 1: BytesList { 1: bytes ... } } or a list of numbers. Checksums are not verified. Only one payload is in
memory at a time, and only the wanted feature is copied.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import IO

from competitions.errors import DownloadError
from competitions.preparing.download import Download, Member

_HEADER_BYTES = 12  # length and its CRC
_MAX_RECORD_BYTES = 1 << 30  # a greater length means damage; as many bytes would be allocated
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # protobuf's wire types


def texts(download: Download, name: str, feature: str) -> Iterator[str]:
    """The first value of the bytes feature `feature` of each record of the file `name`, as UTF-8 text.

    Raises `DownloadError` if the file is truncated or not a TFRecord file, or if a record lacks the feature.
    """
    with download.open_file(name) as file:
        try:
            for payload in _payloads(file):
                yield _first_bytes(payload, feature.encode()).decode()
        except (EOFError, ValueError, OverflowError, LookupError) as error:
            raise DownloadError(f"{name} is not a complete TFRecord file ({error}); download it again") from error


def shards(download: Download, names: Iterable[str], to: str) -> Iterator[tuple[str, Member]]:
    """Yield (path, file) of record files `x-COUNT.tfrec`, renumbered. `to` is a pattern of the number and COUNT.

    With `"train{:02}-{}.tfrec"` the first path is `train00-2071.tfrec`. The result is for `Tree.copies`.
    """
    for number, name in enumerate(names):
        yield to.format(number, PurePosixPath(name).stem.split("-")[1]), download.file(name)


def _payloads(file: IO[bytes]) -> Iterator[memoryview]:
    while header := file.read(_HEADER_BYTES):
        if len(header) < _HEADER_BYTES:
            raise EOFError("it ends within a record")
        (length,) = struct.unpack_from("<Q", header)
        if length > _MAX_RECORD_BYTES:
            raise ValueError(f"a record of {length:,} bytes")
        payload = file.read(length)
        if len(payload) < length or len(file.read(4)) < 4:
            raise EOFError("it ends within a record")
        yield memoryview(payload)


def _first_bytes(example: memoryview, key: bytes) -> bytes:
    for features in _fields(example, 1):
        for entry in _fields(features, 1):
            if any(name == key for name in _fields(entry, 1)):
                for value in _fields(entry, 2):
                    for values in _fields(value, 1):
                        for content in _fields(values, 1):
                            return bytes(content)
    raise LookupError(f"a record has no {key.decode()}")


def _fields(message: memoryview, number: int) -> Iterator[memoryview]:
    """Yield the contents of the length-delimited fields with that number."""
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        kind = tag & 7
        if kind == _VARINT:
            _, position = _varint(message, position)
        elif kind in (_FIXED64, _FIXED32):
            position += 8 if kind == _FIXED64 else 4
        elif kind == _BYTES:
            length, position = _varint(message, position)
            if tag >> 3 == number:
                yield message[position : position + length]
            position += length
        else:
            raise ValueError(f"wire type {kind} in a record")


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    """The variable-length integer at `position` (7 bits per byte, lowest first), and the offset of the next field."""
    value = shift = 0
    while True:
        byte = message[position]
        value |= (byte & 0x7F) << shift
        position += 1
        shift += 7
        if byte < 0x80:
            return value, position
