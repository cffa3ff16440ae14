"""Lines of simplified-nq-train.jsonl as ``pandas.DataFrame.to_json`` writes them after ``pandas.read_json``.

pandas parses and formats 50 KB a line, of which nearly all is the text of the document, whose bytes stay the same
except that slashes get a backslash. Here this text is passed on as it is, if all its escapes are those that pandas
writes, and only the rest of the line is parsed. `parse` returns None for lines for which this is not certain.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import numpy as np
import orjson

_START, _END = b'{"document_text": "', b'", "long_answer_candidates": '
_REST = ("long_answer_candidates", "question_text", "annotations", "document_url", "example_id")
_ESCAPES = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.", re.DOTALL)
_SHORT = {b'\\"', b"\\\\", b"\\b", b"\\f", b"\\n", b"\\r", b"\\t"}
_OTHER = (b"\\", b"/", b".", b"e+", b"e-", b"null")  # marks of escapes and fractions
_encode = json.JSONEncoder(separators=(",", ":")).encode


class Question(NamedTuple):
    """A line: its values in the format of the prepared files, and the parsed annotations."""

    values: dict[str, bytes]
    example_id: str
    annotations: list[dict[str, Any]]

    def line(self, columns: list[str] | None = None) -> bytes:
        """The line of a prepared file with these columns, by default all in the order of the download."""
        return (
            b"{"
            + b",".join(b'"%b":%b' % (name.encode(), self.values[name]) for name in columns or self.values)
            + b"}\n"
        )


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
    if any(not value.isascii() or any(mark in value for mark in _OTHER) for value in nested.values()):
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
    escapes = _ESCAPES.findall(text) if b"\\" in text else []
    if text.count(b'"') != escapes.count(b'\\"'):
        return False
    return all(escape in _SHORT or _is_canonical_number(escape) for escape in set(escapes))


def _is_canonical_number(escape: bytes) -> bool:
    """Whether pandas writes the character with this escape, a number or a pair of surrogates."""
    if len(escape) < 6 or escape != escape.lower():
        return False
    character = json.loads(b'"' + escape + b'"')
    return character > "\x7f" and not (len(escape) == 6 and 0xD800 <= ord(character) < 0xE000)
