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
    """A line: its values in the format of the prepared files, apart from slashes, and the parsed annotations."""

    values: dict[str, bytes]
    example_id: str
    annotations: list[dict[str, Any]]


def parse(lines: list[bytes]) -> list[Question] | None:
    """The questions in `lines`; None if only pandas is known to read and write one of them right."""
    together = _are_canonical(lines)
    questions = []
    for line in lines:
        question = _parsed(line, checked=together or _are_canonical([line]))
        if question is None:
            return None
        questions.append(question)
    return questions


def text_of(questions: list[Question], columns: list[str] | None = None) -> bytes:
    """The lines of a prepared file with these columns, by default all in the order of the download."""
    pieces: list[bytes] = []
    for question in questions:
        before = b"{"
        for name in columns or question.values:
            pieces += (before, b'"', name.encode(), b'":', question.values[name])
            before = b","
        pieces.append(b"}\n")
    return b"".join(pieces).replace(b"/", b"\\/")  # all slashes are in strings, and none has a backslash yet


def _parsed(line: bytes, *, checked: bool) -> Question | None:
    """The question in `line`; None if only pandas is known to read and write it right.

    `checked` says that all characters and escapes of the line are those that pandas writes, apart from quotes.
    """
    end = line.find(_END)
    if not line.startswith(_START) or end < len(_START) or line[end - 1] == ord("\\"):  # an escaped quote
        return None
    if not (_has_escaped_quotes(line, len(_START), end) if checked else _is_canonical(line[len(_START) : end])):
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
    candidates, annotations = (orjson.dumps(rest[key]) for key in ("long_answer_candidates", "annotations"))
    strings = [_encode(each).encode() for each in (rest["question_text"], rest["document_url"], name)]
    if any(value.translate(None, _PLAIN) or b"null" in value or b"e-" in value for value in (candidates, annotations)):
        return None
    if any(b"\\u007f" in value for value in strings):  # the one character that Python escapes and pandas does not
        return None
    values = {
        "document_text": line[len(_START) - 1 : end + 1],  # with its quotes
        "long_answer_candidates": candidates,
        "question_text": strings[0],
        "annotations": annotations,
        "document_url": strings[1],
        "example_id": strings[2],
    }
    return Question(values, name, rest["annotations"])


def _has_escaped_quotes(line: bytes, start: int, end: int) -> bool:
    """Whether each quote from `start` until `end` has a backslash, in a line without backslashes that are escaped."""
    place = line.find(b'"', start)
    while place < end:
        if line[place - 1] != ord("\\"):
            return False
        place = line.find(b'"', place + 1)
    return True


def _are_canonical(lines: list[bytes]) -> bool:
    """Whether in all lines characters outside of escapes are printable ASCII, and escapes those that pandas writes.

    False also where it is not certain: with escaped backslashes, and with pairs of surrogates.
    """
    text = b"".join(lines)
    characters = np.frombuffer(text, np.uint8)
    ends = sum(line.endswith(b"\n") for line in lines)
    if not text.isascii() or b"\x7f" in text or np.count_nonzero(characters < ord(" ")) != ends:
        return False
    marks = np.flatnonzero(characters == ord("\\"))
    if len(marks) and marks[-1] + 6 > len(text):
        return False
    kinds = characters[marks + 1]
    if not _KNOWN[kinds].all() or (kinds == ord("\\")).any():
        return False
    fours = np.ndarray(max(len(text) - 3, 0), np.uint32, text, strides=(1,))  # the four bytes from each place on
    codes = np.unique(fours[marks[kinds == ord("u")] + 2])
    escapes = [b"\\u" + code.tobytes() for code in codes]
    return all(escape[2:3] not in b"dD" and _is_canonical_number(escape) for escape in escapes)


def _is_canonical(text: bytes) -> bool:
    """Whether the inside of a JSON string is spelled as pandas spells it, apart from slashes."""
    characters = np.frombuffer(text, np.uint8)
    if len(text) and (characters.min() < ord(" ") or characters.max() > ord("~")):
        return False
    return _has_canonical_escapes(text)


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
