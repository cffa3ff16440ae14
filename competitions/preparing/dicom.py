"""DICOM files under other names: headers without what identifies the patient, the study or the file.

Pixels stay as they are, byte for byte. The rules follow the basic confidentiality profile of DICOM PS3.15, annex E, as
far as the files of the competitions need it: unique identifiers and ids are replaced, dates, times, names of people and
places are emptied, private elements are left out. Only uncompressed headers in little endian are read, as all scanners
and archives write them today.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from competitions.errors import DownloadError

if TYPE_CHECKING:
    from competitions.preparing.download import Download

Tag = tuple[int, int]

_PREAMBLE = 128
_MAGIC = b"DICM"
_IMPLICIT = "1.2.840.10008.1.2"
_UNREADABLE = ("1.2.840.10008.1.2.2", "1.2.840.10008.1.2.1.99")  # big endian, deflated
_STANDARD = b"1.2.840.10008."
"""How the identifiers begin that the standard defines: kinds of objects and of encoding."""
_LONG = {b"OB", b"OD", b"OF", b"OL", b"OV", b"OW", b"SQ", b"SV", b"UC", b"UN", b"UR", b"UT", b"UV"}
"""Kinds of values whose length has four bytes."""
_UNDEFINED = 0xFFFFFFFF
_PIXELS: Tag = (0x7FE0, 0x0010)
_ITEM, _END_OF_ITEM, _END_OF_SEQUENCE = b"\xfe\xff\x00\xe0", b"\xfe\xff\x0d\xe0", b"\xfe\xff\xdd\xe0"
_TRANSFER_SYNTAX: Tag = (0x0002, 0x0010)
_FILE: tuple[Tag, ...] = ((0x0002, 0x0003), (0x0008, 0x0018))
_STUDY: Tag = (0x0020, 0x000D)
_SERIES: Tag = (0x0020, 0x000E)
_PATIENT: tuple[Tag, ...] = ((0x0010, 0x0010), (0x0010, 0x0020))
_NUMBER: Tag = (0x0020, 0x0013)
_EMPTIED_KINDS = {b"UI", b"PN", b"DA", b"TM", b"DT"}
_EMPTIED = {
    (0x0008, 0x0050),  # accession number
    (0x0008, 0x0080),  # institution and its address
    (0x0008, 0x0081),
    (0x0008, 0x1010),  # station
    (0x0010, 0x1000),  # other ids, comments
    (0x0010, 0x4000),
    (0x0018, 0x1000),  # serial number of the device
    (0x0020, 0x0010),  # id of the study
    (0x0020, 0x4000),  # comments on the image
}
# Where values are stored without their kind, these are known, and sequences by how they begin.
_KINDS: dict[Tag, bytes] = {
    **dict.fromkeys((*_FILE, _STUDY, _SERIES, (0x0020, 0x0052), (0x0008, 0x0014), (0x0008, 0x1155)), b"UI"),
    **dict.fromkeys([(0x0008, element) for element in (0x0012, *range(0x0020, 0x0026))], b"DA"),
    **dict.fromkeys([(0x0008, element) for element in (0x0013, 0x002A, *range(0x0030, 0x0036))], b"TM"),
    **dict.fromkeys([(0x0010, 0x0030), (0x0010, 0x0032)], b"DA"),
    **dict.fromkeys([(0x0010, 0x0010), (0x0008, 0x0090), (0x0008, 0x1050), (0x0008, 0x1070)], b"PN"),
}


@dataclass(frozen=True)
class Names:
    """What a file is called: its patient, its series, the file; and its number in the series, None to keep it."""

    patient: str
    series: str
    file: str
    number: str | None = None

    def value(self, tag: Tag, kind: bytes, old: bytes) -> bytes:
        """The value of an element under these names."""
        if tag in _PATIENT:
            return _padded(self.patient, b" ")
        if tag == _NUMBER and self.number is not None:
            return _padded(self.number, b" ")
        if tag in _FILE:
            return _identifier(self.patient, self.series, self.file)
        if tag in (_STUDY, _SERIES):
            return _identifier(self.patient, *([self.series] if tag == _SERIES else []))
        if tag in _EMPTIED or (kind in _EMPTIED_KINDS and not old.startswith(_STANDARD)):
            return b""
        return old


def anonymous_scan(download: Download, archive: str, name: str, *names: str | None) -> Iterator[bytes]:
    """A DICOM file of the download under other names, the fields of `Names`; for `Tree.derived`."""
    content = download.view(archive).read_bytes(name)
    try:
        yield renamed(content, Names(*names))  # type: ignore[arg-type]  # plain values, as they come to a worker
    except (struct.error, IndexError) as error:
        raise DownloadError(f"{name} is damaged (its header ends too early); download it again") from error


def renamed(content: bytes, names: Names) -> bytes:
    """The file with other names in its header; what is no DICOM file stays as it is.

    Raises `DownloadError` for an encoding that is not supported, `struct.error` or `IndexError` for a damaged header.
    """
    if content[_PREAMBLE : _PREAMBLE + len(_MAGIC)] != _MAGIC:
        return content
    start = end = _PREAMBLE + len(_MAGIC)
    while content[end : end + 2] == b"\x02\x00":
        end = _element(content, end, explicit=True).end
    meta = list(_elements(content, start, end, explicit=True))
    syntax = next((each.value for each in meta if each.tag == _TRANSFER_SYNTAX), b"").rstrip(b"\0 ").decode("ascii")
    if syntax in _UNREADABLE:
        raise DownloadError(f"DICOM files with the transfer syntax {syntax} are not supported")
    group = b"".join(_written(each, names, explicit=True) for each in meta if each.tag[1])
    length = _header((0x0002, 0x0000), b"UL", 4, explicit=True) + struct.pack("<I", len(group))
    return b"".join((b"\0" * _PREAMBLE, _MAGIC, length, group, _dataset(content, end, len(content), names, syntax)))


def _dataset(content: bytes, start: int, end: int, names: Names, syntax: str) -> bytes:
    explicit = syntax != _IMPLICIT
    written: list[bytes] = []
    while start < end:
        if struct.unpack_from("<HH", content, start) == _PIXELS:
            return b"".join([*written, content[start:end]])
        element = _element(content, start, explicit)
        written.append(_written(element, names, explicit))
        start = element.end
    return b"".join(written)


@dataclass(frozen=True)
class _Element:
    tag: Tag
    kind: bytes
    value: bytes
    end: int

    @property
    def sequence(self) -> bool:
        return self.kind == b"SQ" or (self.kind in (b"", b"UN") and self.value.startswith(_ITEM))


def _elements(content: bytes, start: int, end: int, explicit: bool) -> Iterator[_Element]:
    while start < end:
        element = _element(content, start, explicit)
        yield element
        start = element.end


def _element(content: bytes, start: int, explicit: bool) -> _Element:
    tag = struct.unpack_from("<HH", content, start)
    kind = content[start + 4 : start + 6] if explicit else _KINDS.get(tag, b"")
    if explicit and kind not in _LONG:
        begin, length = start + 8, struct.unpack_from("<H", content, start + 6)[0]
    else:
        begin = start + (12 if explicit else 8)
        length = struct.unpack_from("<I", content, begin - 4)[0]
    if length != _UNDEFINED:
        if begin + length > len(content):
            raise IndexError(f"element {tag} is longer than the file")
        return _Element(tag, kind, content[begin : begin + length], begin + length)
    if tag == _PIXELS:
        return _Element(tag, kind, b"", len(content))
    end = _end_of_sequence(content, begin, explicit and kind != b"UN")
    return _Element(tag, kind or b"SQ", content[begin : end - 8], end)


def _end_of_sequence(content: bytes, start: int, explicit: bool) -> int:
    """Where a sequence without a length ends, its delimiter included."""
    while content[start : start + 4] != _END_OF_SEQUENCE:
        start = _item(content, start, explicit)[1]
    return start + 8


def _item(content: bytes, start: int, explicit: bool) -> tuple[int, int]:
    """Where the elements of an item end, and where the item does."""
    if content[start : start + 4] != _ITEM:
        raise IndexError("an item is expected")
    length = struct.unpack_from("<I", content, start + 4)[0]
    end = start + 8
    if length != _UNDEFINED:
        return end + length, end + length
    while content[end : end + 4] != _END_OF_ITEM:
        end = _element(content, end, explicit).end
    return end, end + 8


def _written(element: _Element, names: Names, explicit: bool) -> bytes:
    """An element under other names; nothing for a private one, or for the length of a group, which is not needed."""
    if element.tag[0] % 2 or element.tag[1] == 0:
        return b""
    value = element.value
    if element.sequence:
        value, start = b"", 0
        inside = explicit and element.kind != b"UN"  # values of unknown kind are implicit inside
        while start < len(element.value):
            last, after = _item(element.value, start, inside)
            own = (_written(each, names, inside) for each in _elements(element.value, start + 8, last, inside))
            whole = b"".join(own)
            value += _ITEM + struct.pack("<I", len(whole)) + whole
            start = after
    else:
        value = names.value(element.tag, element.kind, value)
    return _header(element.tag, element.kind, len(value), explicit) + value


def _header(tag: Tag, kind: bytes, length: int, explicit: bool) -> bytes:
    if not explicit:
        return struct.pack("<HHI", *tag, length)
    if kind in _LONG:
        return struct.pack("<HH2sHI", *tag, kind, 0, length)
    return struct.pack("<HH2sH", *tag, kind, length)


def _identifier(*names: str) -> bytes:
    """A unique identifier made of names: a UUID as PS3.5, annex B.2, writes it."""
    number = int.from_bytes(blake2b("\0".join(names).encode(), digest_size=16).digest(), "big")
    return _padded(f"2.25.{number}", b"\0")


def _padded(text: str, with_: bytes) -> bytes:
    data = text.encode("ascii")
    return data + with_ * (len(data) % 2)
