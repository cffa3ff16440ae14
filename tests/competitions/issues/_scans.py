"""DICOM files as scanners write them, small enough for tests."""

from __future__ import annotations

import struct

PIXELS = bytes(range(16))
EXPLICIT, IMPLICIT = "1.2.840.10008.1.2.1", "1.2.840.10008.1.2"
_COMPRESSED = "1.2.840.10008.1.2.4."
_LONG = (b"OW", b"SQ", b"UN")


def element(group: int, number: int, kind: bytes, value: bytes | str, *, explicit: bool = True) -> bytes:
    """One element; text is padded to an even length."""
    data = value if isinstance(value, bytes) else value.encode() + (b"\0" if kind == b"UI" else b" ") * (len(value) % 2)
    if not explicit:
        return struct.pack("<HHI", group, number, len(data)) + data
    if kind in _LONG:
        return struct.pack("<HH2sHI", group, number, kind, 0, len(data)) + data
    return struct.pack("<HH2sH", group, number, kind, len(data)) + data


def item(*elements: bytes, defined: bool = True) -> bytes:
    """An item of a sequence, with its length or with a delimiter."""
    content = b"".join(elements)
    if defined:
        return struct.pack("<HHI", 0xFFFE, 0xE000, len(content)) + content
    return struct.pack("<HHI", 0xFFFE, 0xE000, 0xFFFFFFFF) + content + struct.pack("<HHI", 0xFFFE, 0xE00D, 0)


def scan(patient: str, series: str, number: str, syntax: str = EXPLICIT, pixels: bytes = PIXELS) -> bytes:
    """A file that says in every way DICOM has whose it is."""
    explicit = syntax != IMPLICIT
    pixel_data = element(0x7FE0, 0x10, b"OW", pixels, explicit=explicit)
    if syntax.startswith(_COMPRESSED):  # in items, after an empty table of their places
        end = struct.pack("<HHI", 0xFFFE, 0xE0DD, 0)
        pixel_data = struct.pack("<HH2sHI", 0x7FE0, 0x10, b"OB", 0, 0xFFFFFFFF) + item() + item(pixels) + end
    unique = f"1.2.840.10009.1.2.3.{patient}.1.{number}"
    meta = (
        element(2, 2, b"UI", "1.2.840.10008.5.1.4.1.1.1.2")
        + element(2, 3, b"UI", unique)
        + element(2, 0x10, b"UI", syntax)
    )

    def one(group: int, number: int, kind: bytes, value: bytes | str) -> bytes:
        return element(group, number, kind, value, explicit=explicit)

    reference = (one(8, 0x1150, b"UI", "1.2.840.10008.5.1.4.1.1.1.2"), one(8, 0x1155, b"UI", unique))
    undefined = struct.pack("<HH2sHI" if explicit else "<HHI", 8, 0x2112, *((b"SQ", 0) if explicit else ()), 0xFFFFFFFF)
    data = [
        one(8, 0x16, b"UI", "1.2.840.10008.5.1.4.1.1.1.2"),
        one(8, 0x18, b"UI", unique),
        one(8, 0x20, b"DA", "20190304"),
        one(8, 0x50, b"SH", patient),
        one(8, 0x60, b"CS", "MG"),
        one(8, 0x1140, b"SQ", item(*reference)),
        undefined + item(*reference, defined=False) + struct.pack("<HHI", 0xFFFE, 0xE0DD, 0),
        one(9, 0x10, b"LO", f"PRIVATE {patient}"),
        one(0x10, 0x10, b"PN", f"Doe^{patient}"),
        one(0x10, 0x20, b"LO", patient),
        one(0x20, 0xD, b"UI", f"1.2.840.10009.{patient}"),
        one(0x20, 0xE, b"UI", f"1.2.840.10009.{patient}.{len(series)}"),
        one(0x20, 0x13, b"IS", number),
        one(0x20, 0x52, b"UI", f"1.2.840.10009.{patient}.9"),
        one(0x28, 0x10, b"US", struct.pack("<H", 4)),
        one(0x28, 0x11, b"US", struct.pack("<H", 2)),
        pixel_data,
    ]
    length = element(2, 0, b"UL", struct.pack("<I", len(meta)))
    return b"\0" * 128 + b"DICM" + length + meta + b"".join(data)
