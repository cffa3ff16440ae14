"""Recognise what a file is by its first bytes, whatever its name says."""

from __future__ import annotations

from common.errors import UserError
from common.texts import require_fetched
from competitions.errors import DownloadError

HEAD_BYTES = 512
_ARCHIVES = ((b"PK\3\4", ".zip"), (b"PK\5\6", ".zip"), (b"7z\xbc\xaf\x27\x1c", ".7z"), (b"\x1f\x8b", ".tar.gz"))
_TAR = slice(257, 262)  # of a header of tar, where it has its magic number
_PACK = "pack its content as a zip archive, or put the unpacked folder there"
_OTHERS = (
    (b"PK\7\x08", "one part of an archive in several", "join them with `zip -s 0 PART.zip --out WHOLE.zip`"),
    (b"Rar!", "a RAR archive", _PACK),
    (b"BZh", "compressed by bzip2", _PACK),
    (b"\xfd7zXZ", "compressed by xz", _PACK),
    (b"\x28\xb5\x2f\xfd", "compressed by Zstandard", _PACK),
    (b"<", "a web page and no archive, perhaps of a login", "log in to Kaggle, and download it again"),
    (b"{", "a JSON text and no archive, perhaps an error of a server", "read it, and download it again"),
)


def recognised(head: bytes, label: str) -> str:
    """The suffix of the format of the archive that begins with `head`; empty if it is not known.

    Raises `DownloadError` if it is something else that is known; `label` is its name in the message.
    """
    if head[_TAR] == b"ustar":
        return ".tar"
    for magic, suffix in _ARCHIVES:
        if head.startswith(magic):
            return suffix
    try:
        require_fetched(head, label)
    except UserError as error:
        raise DownloadError(str(error)) from None
    for magic, what, remedy in _OTHERS:
        if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(magic):
            raise DownloadError(f"{label} is {what}: {remedy}")
    return ""
