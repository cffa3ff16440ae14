"""Headers of DICOM files under other names; pixels are left alone."""

from __future__ import annotations

import struct

import pytest

from competitions.errors import DownloadError
from competitions.preparing.dicom import Names, renamed
from tests.competitions.issues._scans import EXPLICIT, IMPLICIT, PIXELS, element, scan

NAMES = Names("70001", "T1w", "Image-3.dcm")


@pytest.mark.parametrize("syntax", [EXPLICIT, IMPLICIT, "1.2.840.10008.1.2.4.90"])
def test_nothing_of_the_old_names_is_left(syntax: str) -> None:
    old = scan("34051", "T1w", "195896", syntax)
    new = renamed(old, Names("70001", "T1w", "5", "5"))
    for name in (b"34051", b"195896", b"Doe", b"PRIVATE", b"20190304", b"1.2.840.10009"):
        assert name in old, name
        assert name not in new, name
    assert new.count(b"70001") == 2, "name and id"
    assert new[-40:].count(PIXELS) == 1
    assert b"1.2.840.10008.5.1.4.1.1.1.2" in new, "kinds of objects are no names"
    assert len(new) % 2 == 0


def test_what_belongs_together_still_does() -> None:
    first, second = (renamed(scan("1", "T1w", n), Names("7", "T1w", f"Image-{n}.dcm")) for n in ("1", "2"))
    other = renamed(scan("1", "T2w", "1"), Names("7", "T2w", "Image-1.dcm"))
    assert value_of(first, 0x20, 0xD) == value_of(second, 0x20, 0xD) == value_of(other, 0x20, 0xD)
    assert value_of(first, 0x20, 0xE) == value_of(second, 0x20, 0xE) != value_of(other, 0x20, 0xE)
    assert value_of(first, 8, 0x18) != value_of(second, 8, 0x18)
    assert value_of(first, 0x20, 0x13) == b"1 ", "the place of a slice stays"
    assert value_of(first, 8, 0x18).startswith(b"2.25.")


def test_it_depends_on_the_new_names_alone() -> None:
    """Otherwise a list of all old names would tell which became which."""
    assert renamed(scan("1", "T1w", "4"), NAMES) == renamed(scan("2", "T1w", "4"), NAMES)


def test_other_files_stay_as_they_are() -> None:
    assert renamed(b"no scan at all", NAMES) == b"no scan at all"


def test_damaged_ones_are_refused() -> None:
    whole = scan("1", "T1w", "1")
    with pytest.raises(DownloadError, match="is damaged"):
        renamed(whole[:-40], NAMES)


def value_of(content: bytes, group: int, number: int) -> bytes:
    """The value of an element that occurs once outside sequences, with a length of two bytes."""
    kind = {0x13: b"IS"}.get(number, b"UI")
    at = content.index(element(group, number, kind, b"")[:6])
    return content[at + 8 : at + 8 + struct.unpack_from("<H", content, at + 6)[0]]
