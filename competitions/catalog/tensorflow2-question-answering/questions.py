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
from numpy.typing import NDArray

from competitions.tables.arrays import places_in

_START, _END, _NEXT = b'{"document_text": "', b'", "long_answer_candidates": ', b', "question_text": '
_REST = ("question_text", "annotations", "document_url", "example_id")
_CANDIDATES = {
    candidate: tuple(re.split(rb'(?<=_token": )', candidate))
    for values in permutations([b'"start_token": ', b'"end_token": ', b'"top_level": true'])
    for candidate in [b"{" + b", ".join(values) + b"}"]
}
"""Candidates without their digits, all at the top level: what is before, between and after the two numbers."""
_NEXT_ONE, _NEXT_LIST = b", ", b"]["
"""What is between two candidates, and what is if the second is the first of the next list."""
_DIGITS = b"0123456789"
# One backslash before all alternatives: re looks for it with memchr.
_ESCAPES = re.compile(rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SHORT = {b'\\"', b"\\\\", b"\\b", b"\\f", b"\\n", b"\\r", b"\\t"}
_KNOWN = np.isin(np.arange(256), [ord("u"), *(escape[1] for escape in _SHORT)])
"""Whether a character stands for an escape after a backslash."""
_HEXADECIMAL = np.isin(np.arange(256), list(b"0123456789abcdef"))
"""Whether a character is a digit of an escape as pandas writes it."""
_PLAIN = b'{}[],:"_-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
"""Characters of nested values of which pandas changes none; fractions, escapes and slashes are not among them."""
_LONGEST = 18  # digits of a number of 64 bits
_WORD = 8
_encode = json.JSONEncoder(separators=(",", ":")).encode


class Question(NamedTuple):
    """A line: its values in the format of the prepared files, apart from slashes, and the parsed annotations."""

    values: dict[str, bytes | memoryview]
    example_id: str
    annotations: list[dict[str, Any]]


def parse(lines: list[bytes]) -> list[Question] | None:
    """The questions in `lines`; None if only pandas is known to read and write one of them right."""
    documents, lists, rests = [], [], []
    for line in lines:
        after = line.rfind(_NEXT)
        end = line.rfind(_END, 0, after)  # the only one, if all quotes before it have a backslash
        if not line.startswith(_START) or end < len(_START) or after < 0:
            return None
        documents.append(memoryview(line)[len(_START) - 1 : end + 1])  # with its quotes
        lists.append(line[end + len(_END) : after])
        rests.append(b"{" + line[after + 2 :])
    if not _are_canonical(documents) and not all(_is_canonical(bytes(each[1:-1])) for each in documents):
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
        question, url, name_text = [_encode(each).encode() for each in strings]
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


def _are_plain(lists: list[bytes]) -> bool:
    """Whether in all lists of candidates blanks are all that pandas leaves out, and changes.

    Each has to be the same candidate again and again, apart from its digits and from `false` in place of `true`. The
    texts around the numbers are compared, for all of them at the same time.
    """
    frame = lists[0][1 : lists[0].find(b"}") + 1].translate(None, _DIGITS)
    candidate = _CANDIDATES.get(frame.replace(b"false", b"true"))
    if candidate is None or not all(each.startswith(b"[{") and each.endswith(b"}]") for each in lists):
        return False
    before, between, after = candidate
    text = b"".join([*lists, b" " * _WORD])  # so that a word follows each place
    characters = np.frombuffer(text, np.uint8)
    digits = characters - np.uint8(ord("0")) < len(_DIGITS)  # smaller characters become large ones
    edges = places_in(digits[1:] != digits[:-1]) + 1
    first, last = edges[::2], edges[1::2]
    if digits[0] or not len(first) or len(first) % 2:
        return False
    lengths = last - first
    if int(lengths.max()) > _LONGEST or ((characters[first] == ord("0")) & (lengths > 1)).any():
        return False
    begin, end = text[: first[0]], text[last[-1] : -_WORD]
    return (
        begin in {b"[" + each for each in _spellings(before)}
        and end in {each + b"]" for each in _spellings(after)}
        and _are_alike(text, last[0::2], first[1::2], between)
        and _are_joined(text, last[1:-1:2], first[2::2], before, after, len(lists) - 1)
    )


def _spellings(text: bytes) -> set[bytes]:
    """The text, and if it contains `true`, that with `false`."""
    return {text, text.replace(b"true", b"false")}


def _are_alike(text: bytes, starts: NDArray[np.intp], ends: NDArray[np.intp], wanted: bytes) -> bool:
    """Whether the text from each start to each end is `wanted`, or that with `false` in place of `true`."""
    lengths, rest = ends - starts, len(starts)
    for spelling in _spellings(wanted):
        places = starts[lengths == len(spelling)]
        rest -= len(places)
        if not _are_at(text, places, spelling):
            return False
    return not rest


def _are_joined(
    text: bytes, starts: NDArray[np.intp], ends: NDArray[np.intp], before: bytes, after: bytes, lists: int
) -> bool:
    """The same of the text between candidates: `after`, the separator, `before`. So many are between two lists."""
    lengths, rest, found = ends - starts, len(starts), 0
    for last, first in {(last, first) for last in _spellings(after) for first in _spellings(before)}:
        places = starts[lengths == len(last) + len(_NEXT_ONE) + len(first)]
        rest -= len(places)
        places_between = places + len(last)
        between = _words(text, np.uint16)[places_between]
        next_list = between == np.frombuffer(_NEXT_LIST, np.uint16)
        found += int(np.count_nonzero(next_list))
        if not (
            (next_list | (between == np.frombuffer(_NEXT_ONE, np.uint16))).all()
            and _are_at(text, places, last)
            and _are_at(text, places_between + len(_NEXT_ONE), first)
        ):
            return False
    return not rest and found == lists


def _are_at(text: bytes, places: NDArray[np.intp], wanted: bytes) -> bool:
    """Whether `wanted` is at all places, each of which a word has to follow. Words of eight bytes are compared."""
    words, mask = _words(text, np.uint64), _word(b"\xff" * len(wanted))
    for offset in {*range(0, len(wanted) - _WORD, _WORD), max(0, len(wanted) - _WORD)}:
        if ((words[places + offset] & mask) != _word(wanted[offset:])).any():
            return False
    return True


def _word(text: bytes) -> np.uint64:
    """The first eight bytes as a number; zeros in place of those that are missing."""
    found: np.uint64 = np.frombuffer(text[:_WORD].ljust(_WORD, b"\0"), np.uint64)[0]
    return found


def _words(text: bytes, kind: type[Any]) -> NDArray[Any]:
    """The numbers of this type that the bytes from each place on are."""
    return np.ndarray(len(text) + 1 - np.dtype(kind).itemsize, kind, text, strides=(1,))


def _are_canonical(texts: list[memoryview]) -> bool:
    """Whether all texts, with their quotes, are spelled as pandas spells them, apart from slashes.

    False also where it is not certain: with escaped backslashes, and with pairs of surrogates.
    """
    text = b"\n".join([*texts, b" " * 6])  # so that six characters follow each backslash
    characters = np.frombuffer(text, np.uint8)
    # As numbers with a sign, characters that are not ASCII are smaller than a blank, as control characters are.
    if b"\x7f" in text or np.count_nonzero(characters.view(np.int8) < ord(" ")) != len(texts):
        return False
    marks = np.flatnonzero(characters == ord("\\"))
    kinds = characters[marks + 1]
    if not _KNOWN[kinds].all() or (kinds == ord("\\")).any():
        return False
    if np.count_nonzero(characters == ord('"')) != np.count_nonzero(kinds == ord('"')) + 2 * len(texts):
        return False
    digits = _words(text, np.uint32)[marks[kinds == ord("u")] + 2].view(np.uint8).reshape(-1, 4)
    first, second, third = digits[:, 0], digits[:, 1], digits[:, 2]
    beyond_ascii = (first != ord("0")) | (second != ord("0")) | (third > ord("7"))
    return bool(_HEXADECIMAL[digits].all() and (first != ord("d")).all() and beyond_ascii.all())


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
