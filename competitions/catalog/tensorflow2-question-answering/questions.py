"""Lines of simplified-nq-train.jsonl as ``pandas.DataFrame.to_json`` writes them after ``pandas.read_json``.

pandas parses and formats 50 KB a line, of which nearly all is the text of the document, whose bytes stay the same
except that slashes get a backslash. Here this text is passed on as it is, if all its escapes are those that pandas
writes, and only the rest of the line is parsed. `parse` returns None for lines for which this is not certain.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import orjson

_START, _END = b'{"document_text": "', b'", "long_answer_candidates": '
_REST = ("long_answer_candidates", "question_text", "annotations", "document_url", "example_id")
# One backslash before all alternatives: re looks for it with memchr.
_ESCAPES = re.compile(rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SHORT = {b'\\"', b"\\\\", b"\\b", b"\\f", b"\\n", b"\\r", b"\\t"}
_KNOWN = np.isin(np.arange(256), [ord("u"), *(escape[1] for escape in _SHORT)])
"""Whether a character stands for an escape after a backslash."""
_PLAIN = b'{}[],:"_-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
"""Characters of nested values of which pandas changes none; fractions, escapes and slashes are not among them."""
_encode = json.JSONEncoder(separators=(",", ":")).encode


class Question(NamedTuple):
    """A line: its values in the format of the prepared files, and the parsed annotations."""

    values: dict[str, bytes]
    example_id: str
    annotations: list[dict[str, Any]]

    def line(self, columns: list[str] | None = None) -> bytes:
        """The line of a prepared file with these columns, by default all in the order of the download."""
        pieces = [b"{"]
        for name in columns or self.values:
            pieces += (b'"', name.encode(), b'":', self.values[name], b",")
        pieces[-1] = b"}\n"
        return b"".join(pieces)


def parse(line: bytes) -> Question | None:
    """The question in `line`; None if only pandas is known to read and write it right."""
    end = line.find(_END)
    if not line.startswith(_START) or end < 0:
        return None
    text = line[len(_START) : end]
    if not _is_canonical(text):
        return None
    try:
        rest = orjson.loads(b"{" + line[end + 3 :])
    except ValueError:
        return None
    if tuple(rest) != _REST or type(rest["example_id"]) not in (int, str):
        return None
    if type(rest["question_text"]) is not str or type(rest["document_url"]) is not str:
        return None
    name = str(rest["example_id"])
    nested = {key: orjson.dumps(rest[key]) for key in ("long_answer_candidates", "annotations")}
    if any(value.translate(None, _PLAIN) or b"null" in value or b"e-" in value for value in nested.values()):
        return None
    values = {
        "document_text": b'"' + text.replace(b"/", b"\\/") + b'"',
        "long_answer_candidates": nested["long_answer_candidates"],
        "question_text": _formatted(_encode(rest["question_text"])),
        "annotations": nested["annotations"],
        "document_url": _formatted(_encode(rest["document_url"])),
        "example_id": _formatted(_encode(name)),
    }
    if any(
        b"\\u007f" in value for value in values.values()
    ):  # the one character that Python escapes and pandas does not
        return None
    return Question(values, name, rest["annotations"])


def _formatted(text: str) -> bytes:
    return text.replace("/", "\\/").encode()


def _is_canonical(text: bytes) -> bool:
    """Whether the inside of a JSON string is spelled as pandas spells it, apart from slashes."""
    characters = np.frombuffer(text, np.uint8)
    if len(text) and (characters.min() < ord(" ") or characters.max() > ord("~")):
        return False
    marks = np.flatnonzero(characters[:-1] == ord("\\"))
    kinds = characters[marks + 1]
    numbers = marks[kinds == ord("u")]
    digits = characters[numbers[:, None] + np.arange(2, 6)] if len(numbers) and numbers[-1] + 6 <= len(text) else None
    if text.endswith(b"\\") or (kinds == ord("\\")).any() or (digits is None) != (len(numbers) == 0):
        return _has_canonical_escapes(text)
    codes = set() if digits is None else {number.tobytes() for number in np.unique(digits.view(np.uint32))}
    if any(code[:1] in b"dD" for code in codes):  # a surrogate belongs to the one before or after it
        return _has_canonical_escapes(text)
    if np.count_nonzero(characters == ord('"')) != np.count_nonzero(kinds == ord('"')):
        return False
    return bool(_KNOWN[kinds].all()) and all(_is_canonical_number(b"\\u" + code) for code in codes)


def _has_canonical_escapes(text: bytes) -> bool:
    """The same for a text of ASCII characters, escape by escape."""
    escapes = _ESCAPES.findall(text)
    if text.count(b'"') != escapes.count(b'\\"') or b"\\" in _ESCAPES.sub(b"", text):
        return False
    return all(escape in _SHORT or _is_canonical_number(escape) for escape in set(escapes))


@lru_cache(1 << 17)
def _is_canonical_number(escape: bytes) -> bool:
    """Whether pandas writes the character with this escape, a number or a pair of surrogates."""
    if len(escape) < 6 or escape != escape.lower():
        return False
    try:
        character = json.loads(b'"' + escape + b'"')
    except ValueError:  # no digits
        return False
    return character > "\x7f" and not (len(escape) == 6 and 0xD800 <= ord(character) < 0xE000)
