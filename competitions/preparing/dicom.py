"""DICOM files under other names: headers without what identifies the patient, the study or the file.

Pixels stay as they are, byte for byte. The rules follow the basic confidentiality profile of DICOM PS3.15, annex E, as
far as the files of the competitions need it: unique identifiers and ids are replaced, dates, times, names of people and
places are emptied, private elements are left out.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from competitions.errors import DownloadError

if TYPE_CHECKING:
    from pydicom import Dataset

    from competitions.preparing.download import Download

_PREAMBLE = 128
_MAGIC = b"DICM"
_STANDARD = "1.2.840.10008."
"""How the identifiers begin that the standard defines: kinds of objects and of encoding."""
_FILE = {0x00020003, 0x00080018}
_STUDY = 0x0020000D
_SERIES = 0x0020000E
_PATIENT = {0x00100010, 0x00100020}
_NUMBER = 0x00200013
_EMPTIED_KINDS = {"UI", "PN", "DA", "TM", "DT"}
_EMPTIED = {
    0x00080050,  # accession number
    0x00080080,  # institution and its address
    0x00080081,
    0x00081010,  # station
    0x00101000,  # other ids, comments
    0x00104000,
    0x00181000,  # serial number of the device
    0x00200010,  # id of the study
    0x00204000,  # comments on the image
}
_KNOWN = {*_FILE, _STUDY, _SERIES, *_PATIENT, _NUMBER, *_EMPTIED}
"""Elements that have other values under other names, whatever their kind."""


@dataclass(frozen=True)
class Names:
    """What a file is called: its patient, its series, the file; and its number in the series, None to keep it."""

    patient: str
    series: str
    file: str
    number: str | None = None

    def value(self, tag: int, kind: str, old: Any) -> Any:
        """The value of an element under these names."""
        if tag in _PATIENT:
            return self.patient
        if tag == _NUMBER and self.number is not None:
            return self.number
        if tag in _FILE:
            return _identifier(self.patient, self.series, self.file)
        if tag in (_STUDY, _SERIES):
            return _identifier(self.patient, *([self.series] if tag == _SERIES else []))
        if tag in _EMPTIED or (kind in _EMPTIED_KINDS and not str(old).startswith(_STANDARD)):
            return ""
        return old


def anonymous_scan(download: Download, archive: str, name: str, *names: str | None) -> Iterator[bytes]:
    """A DICOM file of the download under other names, the fields of `Names`; for `Tree.derived`."""
    content = download.view(archive).read_bytes(name)
    try:
        yield renamed(content, Names(*names))  # type: ignore[arg-type]  # plain values, as they come to a worker
    except DownloadError as error:
        raise DownloadError(f"{name} {error}; download it again") from error


def renamed(content: bytes, names: Names) -> bytes:
    """The file with other names in its header; what is no DICOM file stays as it is. Raises `DownloadError`."""
    if content[_PREAMBLE : _PREAMBLE + len(_MAGIC)] != _MAGIC:
        return content
    from pydicom import config, dcmread

    # Values that the standard does not allow are no concern of ours.
    config.settings.reading_validation_mode = config.settings.writing_validation_mode = config.IGNORE
    written = io.BytesIO()
    try:
        dataset = dcmread(io.BytesIO(content))
        _rename(dataset, names)
        _rename(dataset.file_meta, names)
        dataset.preamble = bytes(_PREAMBLE)
        # Otherwise the bytes would name the version of the library.
        dataset.save_as(written, enforce_file_format=False)
    except Exception as error:  # of the library, there are many kinds
        raise DownloadError(f"is damaged ({type(error).__name__}: {str(error).partition(chr(10))[0]})") from error
    return written.getvalue()


def _rename(dataset: Dataset, names: Names) -> None:
    from pydicom.datadict import dictionary_has_tag, dictionary_VR
    from pydicom.dataelem import RawDataElement

    for tag in list(dataset.keys()):
        if tag.is_private:
            del dataset[tag]
            continue
        raw = dataset.get_item(tag)
        if isinstance(raw, RawDataElement) and raw.value is not None and raw.length not in (len(raw.value), 0xFFFFFFFF):
            raise EOFError(f"element {tag} is longer than the file")
        kind = raw.VR or (dictionary_VR(tag) if dictionary_has_tag(tag) else "UN")
        if kind in ("SQ", "UN"):
            element = dataset[tag]  # parsed: a sequence can be stored as unknown
            for item in element.value if element.VR == "SQ" else ():
                _rename(item, names)
        elif tag in _KNOWN or kind in _EMPTIED_KINDS:
            element = dataset[tag]
            if (new := names.value(tag, kind, element.value)) != element.value:
                element.value = new


def _identifier(*names: str) -> str:
    """A unique identifier made of names: a UUID as PS3.5, annex B.2, writes it."""
    number = int.from_bytes(blake2b("\0".join(names).encode(), digest_size=16).digest(), "big")
    return f"2.25.{number}"
