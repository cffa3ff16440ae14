"""DICOM files under other names: their headers do not identify the patient, the study or the file.

Pixels stay the same, byte for byte. The rules follow the basic confidentiality profile of DICOM PS3.15, annex E, as far
as the files of the competitions need it: unique identifiers and ids are replaced, dates, times, names of people and
places are emptied, private elements are removed.
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

_PREAMBLE_BYTES = 128
_MAGIC = b"DICM"
_STANDARD_PREFIX = "1.2.840.10008."
"""The prefix of the identifiers that the standard defines for kinds of objects and of encoding."""
_FILE_TAGS = {0x00020003, 0x00080018}
_STUDY_TAG = 0x0020000D
_SERIES_TAG = 0x0020000E
_PATIENT_TAGS = {0x00100010, 0x00100020}
_NUMBER_TAG = 0x00200013
_EMPTIED_KINDS = {"UI", "PN", "DA", "TM", "DT"}
_EMPTIED_TAGS = {
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
_REPLACED_TAGS = {*_FILE_TAGS, _STUDY_TAG, _SERIES_TAG, *_PATIENT_TAGS, _NUMBER_TAG, *_EMPTIED_TAGS}
"""Elements whose values are replaced, whatever their kind."""


@dataclass(frozen=True)
class Names:
    """The names of a file, its patient and its series, and its number in the series, None to keep the number."""

    patient: str
    series: str
    file: str
    number: str | None = None

    def value(self, tag: int, kind: str, old: Any) -> Any:
        """The value of an element under these names."""
        if tag in _PATIENT_TAGS:
            return self.patient
        if tag == _NUMBER_TAG and self.number is not None:
            return self.number
        if tag in _FILE_TAGS:
            return _identifier(self.patient, self.series, self.file)
        if tag in (_STUDY_TAG, _SERIES_TAG):
            return _identifier(self.patient, *([self.series] if tag == _SERIES_TAG else []))
        if tag in _EMPTIED_TAGS or (kind in _EMPTIED_KINDS and not str(old).startswith(_STANDARD_PREFIX)):
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
    """The file with other names in its header; a file in another format is unchanged. Raises `DownloadError`."""
    if content[_PREAMBLE_BYTES : _PREAMBLE_BYTES + len(_MAGIC)] != _MAGIC:
        return content
    from pydicom import config, dcmread

    # Values that the standard does not allow are accepted and written as they are.
    config.settings.reading_validation_mode = config.settings.writing_validation_mode = config.IGNORE
    written = io.BytesIO()
    try:
        dataset = dcmread(io.BytesIO(content))
        _rename(dataset, names)
        _rename(dataset.file_meta, names)
        dataset.preamble = bytes(_PREAMBLE_BYTES)
        # With an enforced format, the bytes would name the version of the library.
        dataset.save_as(written, enforce_file_format=False)
    except Exception as error:  # the library raises many kinds of errors
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
        elif tag in _REPLACED_TAGS or kind in _EMPTIED_KINDS:
            element = dataset[tag]
            if (new_value := names.value(tag, kind, element.value)) != element.value:
                element.value = new_value


def _identifier(*names: str) -> str:
    """A unique identifier derived from names: a UUID in the form of PS3.5, annex B.2."""
    number = int.from_bytes(blake2b("\0".join(names).encode(), digest_size=16).digest(), "big")
    return f"2.25.{number}"
