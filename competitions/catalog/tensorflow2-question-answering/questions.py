"""Lines of simplified-nq-train.jsonl as ``pandas.DataFrame.to_json`` writes them after ``pandas.read_json``.

pandas parses and formats 50 KB a line, of which nearly all is the text of the document, whose bytes stay the same
except that slashes get a backslash, or the list of candidates, which loses its blanks. Here these are passed on as they
are, if all escapes are those that pandas writes and each candidate has the numbers that it writes, and only the rest of
the line is parsed. `parse` returns None for lines for which this is not certain.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import orjson

_START, _END, _NEXT = b'{"document_text": "', b'", "long_answer_candidates": ', b', "question_text": '
_REST = ("question_text", "annotations", "document_url", "example_id")
_CANDIDATES = {
    b"{" + b", ".join(values) + b"}"
    for values in permutations([b'"start_token": ', b'"end_token": ', b'"top_level": true'])
}
"""Candidates without their digits, all at the top level."""
_DIGITS = b"0123456789"
# One backslash before all alternatives: re looks for it with memchr.
_ESCAPES = re.compile(rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SHORT = {b'\\"', b"\\\\", b"\\b", b"\\f", b"\\n", b"\\r", b"\\t"}
_KNOWN = np.isin(np.arange(256), [ord("u"), *(escape[1] for escape in _SHORT)])
"""Whether a character stands for an escape after a backslash."""
_PLAIN = b'{}[],:"_-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
"""Characters of nested values of which pandas changes none; fractions, escapes and slashes are not among them."""
_LONGEST = 18  # digits of a number of 64 bits
_encode = json.JSONEncoder(separators=(",", ":")).encode


class Question(NamedTuple):
    """A line: its values in the format of the prepared files, apart from slashes, and the parsed annotations."""

    values: dict[str, bytes]
    example_id: str
    annotations: list[dict[str, Any]]


def parse(lines: list[bytes]) -> list[Question] | None:
    """The questions in `lines`; None if only pandas is known to read and write one of them right."""
    documents, lists, rests = [], [], []
    for line in lines:
        end = line.rfind(_END)  # the only one, if all quotes before it have a backslash
        after = line.find(_NEXT, end)
        if not line.startswith(_START) or end < len(_START) or after < 0:
            return None
        documents.append(line[len(_START) - 1 : end + 1])  # with its quotes
        lists.append(line[end + len(_END) : after])
        rests.append(b"{" + line[after + 2 :])
    if not _are_canonical(documents) and not all(_is_canonical(document[1:-1]) for document in documents):
        return None
    plain = _are_plain(lists)
    questions = []
    for document, candidates, rest in zip(documents, lists, rests, strict=True):
        compact = candidates.translate(None, b" ") if plain or _are_plain([candidates]) else _compact(candidates)
        question = _parsed(document, compact, rest) if compact is not None else None
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


def _parsed(document: bytes, candidates: bytes, rest: bytes) -> Question | None:
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
    strings = [_encode(each).encode() for each in (values["question_text"], values["document_url"], name)]
    # The last is the one character that Python escapes and pandas does not.
    if annotations is None or any(b"\\u007f" in string for string in strings):
        return None
    texts = {
        "document_text": document,
        "long_answer_candidates": candidates,
        "question_text": strings[0],
        "annotations": annotations,
        "document_url": strings[1],
        "example_id": strings[2],
    }
    return Question(texts, name, values["annotations"])


def _compact(value: Any) -> bytes | None:
    """A nested value, or the text of one, as pandas writes it; None if only pandas is known to do so."""
    try:
        text = orjson.dumps(orjson.loads(value) if isinstance(value, bytes) else value)
    except ValueError:
        return None
    return None if text.translate(None, _PLAIN) or b"null" in text or b"e-" in text else text


def _are_plain(lists: list[bytes]) -> bool:
    """Whether in all lists of candidates blanks are all that pandas leaves out, and changes.

    Without its digits, a list has to be the same candidate again and again. Then digits have to be in their places:
    between a blank and the end of a value.
    """
    wanted = 0
    for text in lists:
        frame = text.translate(None, _DIGITS).replace(b"false", b"true")
        candidate, count = frame[1 : frame.find(b"}") + 1], frame.count(b"}")
        if candidate not in _CANDIDATES or frame != b"[" + (candidate + b", ") * (count - 1) + candidate + b"]":
            return False
        wanted += 2 * count
    characters = np.frombuffer(b"".join(lists), np.uint8)
    digits = characters - np.uint8(ord("0")) < len(_DIGITS)  # smaller characters become large ones
    if digits[0] or digits[-1]:
        return False
    edges = np.flatnonzero(digits[1:] != digits[:-1]) + 1
    first, last = edges[::2], edges[1::2]
    lengths = last - first
    return (
        len(first) == wanted
        and bool((characters[first - 1] == ord(" ")).all())
        and bool(np.isin(characters[last], np.frombuffer(b",}", np.uint8)).all())
        and int(lengths.max()) <= _LONGEST
        and not ((characters[first] == ord("0")) & (lengths > 1)).any()
    )


def _are_canonical(texts: list[bytes]) -> bool:
    """Whether all texts, with their quotes, are spelled as pandas spells them, apart from slashes.

    False also where it is not certain: with escaped backslashes, and with pairs of surrogates.
    """
    text = b"\n".join([*texts, b" " * 6])  # so that six characters follow each backslash
    characters = np.frombuffer(text, np.uint8)
    if not text.isascii() or b"\x7f" in text or np.count_nonzero(characters < ord(" ")) != len(texts):
        return False
    marks = np.flatnonzero(characters == ord("\\"))
    kinds = characters[marks + 1]
    if not _KNOWN[kinds].all() or (kinds == ord("\\")).any():
        return False
    if np.count_nonzero(characters == ord('"')) != np.count_nonzero(kinds == ord('"')) + 2 * len(texts):
        return False
    fours = np.ndarray(len(text) - 3, np.uint32, text, strides=(1,))  # the four bytes from each place on
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
