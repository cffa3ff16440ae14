"""Lines of simplified-nq-train.jsonl as ``pandas.DataFrame.to_json`` writes them after ``pandas.read_json``.

pandas parses and formats 50 KB a line, of which nearly all is the text of the document, whose bytes stay the same
except that slashes get a backslash, or the list of candidates, which loses its blanks. Here these are passed on as they
are, if all escapes are those that pandas writes and the candidates have whole numbers only, and the rest of the line is
parsed. `parse` returns None for a line for which this is not certain.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import orjson

_START, _END, _NEXT = b'{"document_text": "', b'", "long_answer_candidates": ', b', "question_text": '
_REST = ("question_text", "annotations", "document_url", "example_id")
# One backslash before all alternatives: re looks for it with memchr.
_ESCAPES = re.compile(rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SHORT = {b'\\"', b"\\\\", b"\\b", b"\\f", b"\\n", b"\\r", b"\\t"}
_PLAIN = b'{}[],:"_-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
"""Characters of nested values of which pandas changes none; fractions, escapes and slashes are not among them."""
_encode = json.JSONEncoder(separators=(",", ":")).encode


class Question(NamedTuple):
    """A line: its values in the format of the prepared files, apart from slashes, and the parsed annotations."""

    values: dict[str, bytes | memoryview]
    example_id: str
    annotations: list[dict[str, Any]]


def parse(line: bytes) -> Question | None:
    """The question in a line; None if only pandas is known to read and write it right."""
    after = line.rfind(_NEXT)
    end = line.rfind(_END, 0, after)  # the only one, if all quotes before it have a backslash
    if not line.startswith(_START) or end < len(_START) or after < 0:
        return None
    document = memoryview(line)[len(_START) - 1 : end + 1]  # with its quotes
    if not _is_canonical(bytes(document[1:-1])):
        return None
    candidates = _compact(line[end + len(_END) : after])
    return None if candidates is None else _parsed(document, candidates, b"{" + line[after + 2 :])


def text_of(questions: list[Question], columns: list[str] | None = None) -> bytes:
    """The lines of a prepared file with these columns, by default all in the order of the download."""
    pieces: list[bytes | memoryview] = []
    for question in questions:
        before = b"{"
        for name in columns or question.values:
            pieces += (before, b'"', name.encode(), b'":', question.values[name])
            before = b","
        pieces.append(b"}\n")
    return b"".join(pieces).replace(b"/", b"\\/")  # all slashes are in strings, and none has a backslash yet


def _parsed(document: memoryview, candidates: bytes, rest: bytes) -> Question | None:
    """The question with a document and candidates as pandas writes them, and the rest of its line.

    None if only pandas is known to read and write the rest right.
    """
    try:
        values = orjson.loads(rest)
    except ValueError:
        return None
    if tuple(values) != _REST or type(values["example_id"]) not in (int, str):
        return None
    if type(values["question_text"]) is not str or type(values["document_url"]) is not str:
        return None
    name, annotations = str(values["example_id"]), _compact(values["annotations"])
    if annotations is None:
        return None
    strings = [values["question_text"], values["document_url"], name]
    if b"\x7f" in rest or b"\\u" in rest or not rest.isascii():
        if any("\x7f" in string for string in strings):  # the one character that Python escapes and pandas does not
            return None
        question, url, name_text = [_encode(element).encode() for element in strings]
    else:  # both spell all of these in the same way, and this is faster
        question, url, name_text = map(orjson.dumps, strings)
    texts: dict[str, bytes | memoryview] = {
        "document_text": document,
        "long_answer_candidates": candidates,
        "question_text": question,
        "annotations": annotations,
        "document_url": url,
        "example_id": name_text,
    }
    return Question(texts, name, values["annotations"])


def _compact(value: Any) -> bytes | None:
    """A nested value, or the text of one, as pandas writes it; None if only pandas is known to do so."""
    try:
        text = orjson.dumps(orjson.loads(value) if isinstance(value, bytes) else value)
    except ValueError:
        return None
    return None if text.translate(None, _PLAIN) or b"null" in text or b"e-" in text else text


def _is_canonical(text: bytes) -> bool:
    """Whether the inside of a JSON string is spelled as pandas spells it, apart from slashes."""
    characters = np.frombuffer(text, np.uint8)
    if len(text) and (characters.min() < ord(" ") or characters.max() > ord("~")):
        return False
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
