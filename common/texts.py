"""Read texts that people write: definitions, lists, settings, credentials. Any editor may have saved them.

| found | what happens |
|---|---|
| a byte order mark of UTF-8, UTF-16 or UTF-32 | decoded accordingly |
| line ends of Windows or of old Macs | read as line ends |
| NULs, blank lines or Ctrl-Z at the end | left out |
| another encoding, or NULs elsewhere | refused, with the line |
| a pointer that Git LFS left in place of the file | refused, with the command that fetches the file |

Texts of programs and agents are read where they are used, by rules of their own.
"""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from common.errors import UserError

_MARKS = (  # in this order: the mark of UTF-32 begins with that of UTF-16
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_POINTER = b"version https://git-lfs.github.com/spec/"
IS_POINTER = "is only a pointer of Git LFS: fetch the file itself with `git lfs pull`"
"""What a message says of such a file."""
_TYPED_WRONG = (
    (
        re.compile("[\N{LEFT SINGLE QUOTATION MARK}-\N{DOUBLE HIGH-REVERSED-9 QUOTATION MARK}]"),
        "typographic quotes: type \" or '",
    ),
    (
        re.compile("[\N{NO-BREAK SPACE}\N{ZERO WIDTH SPACE}\N{ZERO WIDTH NO-BREAK SPACE}]"),
        "an invisible or no-break space: delete it, and type an ordinary one",
    ),
)


def read_text(path: Path, what: str = "") -> str:
    """The text in a file. `what` is how messages call the file.

    Raises `UserError` if it cannot be read, or is no text.
    """
    what = what or str(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{what} cannot be read: {error.strerror or error}") from error
    return decoded(content, what)


def decoded(content: bytes, what: str) -> str:
    r"""The text of a file's content. `what` is how messages call the file. Raises `UserError` if it is no text.

    >>> decoded(b"\xef\xbb\xbfa\r\nb\r\n\0\0", "x")
    'a\nb\n'
    >>> decoded(b"a\ncaf\xe9", "x")
    Traceback (most recent call last):
    common.errors.UserError: x is not UTF-8 (line 2, byte 0xe9): save it as UTF-8
    """
    require_fetched(content, what)
    mark, encoding = next(((mark, name) for mark, name in _MARKS if content.startswith(mark)), (b"", "utf-8"))
    body = content[len(mark) :]
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        kind, byte = encoding.removesuffix("-le").removesuffix("-be").upper(), body[error.start]
        raise UserError(f"{what} is not {kind} (line {line}, byte 0x{byte:02x}): save it as UTF-8") from None
    text = text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\0\x1a")
    if (where := text.find("\0")) >= 0:
        line = text.count("\n", 0, where) + 1
        raise UserError(f"{what} has a NUL in line {line}, as UTF-16 and damaged files have: save it as UTF-8")
    return text


def is_pointer(content: bytes) -> bool:
    """Whether this is not a file, or its beginning, but a pointer that Git LFS left in its place."""
    return content.startswith(_POINTER)


def require_fetched(content: bytes, what: str) -> None:
    """Raise `UserError` for a pointer of Git LFS; the beginning of a file is enough."""
    if is_pointer(content):
        raise UserError(f"{what} {IS_POINTER}")


def typed_wrong(text: str) -> str:
    """What word processors and web pages did to a text that cannot be parsed, as the end of a message; or nothing.

    >>> typed_wrong('{"a": \N{NO-BREAK SPACE}1}')
    '; line 1 has an invisible or no-break space: delete it, and type an ordinary one'
    """
    for pattern, what in _TYPED_WRONG:
        if found := pattern.search(text):
            return f"; line {text.count(chr(10), 0, found.start()) + 1} has {what}"
    return ""
