"""Python source as normalised tokens, which stay the same when names, comments, layout and constants change.

Names chosen by the author become ``V``. Names of libraries (attributes, keyword arguments, builtins, imported modules)
stay, because they say what the code does and cannot be renamed. Strings become ``S``, numbers ``N``, and a list of
them is reduced to one. Comments, docstrings and import lines are dropped. Pygments is used because it also reads code
that Python's parser rejects: magics, broken cells, Python 2.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_CHARACTERS = 300_000
"""Maximum number of characters read from a source. The rest is data, and lexing 100,000 takes a second."""


@dataclass(frozen=True)
class Document:
    """A source as tokens. `lines[i]` is the line, from 1, where token `i` begins."""

    name: str
    text: str
    tokens: tuple[str, ...]
    lines: tuple[int, ...]


def tokenize(name: str, text: str) -> Document:
    """Normalise Python source. Never fails, even if the text is not Python."""
    raw = [(kind, value, line) for kind, value, line in _lex(text[:MAX_CHARACTERS]) if kind]
    own = _own_names(raw)
    tokens, lines = [], []
    for place, (kind, value, line) in enumerate(raw):
        if kind == "skip":
            continue
        tokens.append(_normal(raw, place, own) if kind == "name" else {"text": "S", "number": "N"}.get(kind, value))
        lines.append(line)
    kept = _without_lists(tokens)
    return Document(name, text, tuple(tokens[i] for i in kept), tuple(lines[i] for i in kept))


def _without_lists(tokens: list[str]) -> list[int]:
    """Indices of the tokens that remain when list literals of strings or numbers are reduced to one element.

    >>> _without_lists(["f", "(", "S", "S", ",", "S", ",", "S", ",", "N", ")"])
    [0, 1, 2, 8, 9, 10]
    """
    kept: list[int] = []
    for place, value in enumerate(tokens):
        if value in ("S", "N") and kept:
            back = 2 if tokens[kept[-1]] == "," else 1
            if len(kept) >= back and tokens[kept[-back]] == value:
                del kept[len(kept) - back + 1 :]
                continue
        kept.append(place)
    return kept


def _lex(text: str) -> list[tuple[str, str, int]]:
    """(kind, value, line) of the relevant tokens: name, text, number, word; `skip` for the rest of an import."""
    from pygments.lexers.python import PythonLexer  # type: ignore[import-untyped]
    from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String  # type: ignore[import-untyped]

    lexed: list[tuple[str, str, int]] = []
    line, importing, depth, fresh = 1, False, 0, True
    for kind, value in PythonLexer(stripnl=False).get_tokens(text):
        here = line
        line += value.count("\n")
        if kind in Comment:
            continue
        if kind in Keyword.Namespace and fresh:
            importing, depth = True, 0
        depth += (value in "([{") - (value in ")]}") if kind in Punctuation and len(value) == 1 else 0
        if "\n" in value and kind not in String and depth <= 0:
            importing, fresh = False, True
            continue
        if not value.strip():
            continue
        if kind in String.Doc:
            what = ""
        elif importing:
            what = "skip"
        elif kind in String:
            what = "text"
        elif kind in Number:
            what = "number"
        elif kind in Name.Builtin.Pseudo and value != "self":
            what = "word"
        elif kind in Name:
            what = "name"
        else:
            what = "word" if kind in Keyword or kind in Operator or kind in Punctuation else ""
        fresh = value == ";"
        lexed.append((what, value, here))
    return lexed


def _own_names(raw: list[tuple[str, str, int]]) -> frozenset[str]:
    """Names that the source defines itself: functions, classes, and assigned variables."""
    own = set()
    for place, (kind, value, _) in enumerate(raw):
        before = raw[place - 1][1] if place else ""
        own_attribute = before == "." and place > 1 and raw[place - 2][1] == "self"
        if kind == "name" and (before in ("def", "class") or own_attribute):
            own.add(value)
    return frozenset(own)


def _normal(raw: list[tuple[str, str, int]], place: int, own: frozenset[str]) -> str:
    value = raw[place][1]
    before = raw[place - 1][1] if place else ""
    after = raw[place + 1][1] if place + 1 < len(raw) else ""
    if value == "self":
        return "self"
    if value in own:
        return "V"
    if before == ".":
        return value
    if after == "=" and before in (",", "("):
        return value
    if after == "(" and before not in ("def", "class"):
        return value
    return "V"
