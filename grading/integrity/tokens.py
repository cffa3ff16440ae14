"""Python source as normalised tokens, which stay the same when names, comments, layout and constants change.

Names chosen by the author become ``V``. Names of libraries (attributes, keyword arguments, builtins, imported modules)
stay, because they say what the code does and cannot be renamed. Strings become ``S``, numbers ``N``, and a list of
them is reduced to one. Comments, docstrings and import lines are dropped. Pygments is used because it also reads code
that Python's parser rejects: magics, broken cells, Python 2.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_CHARACTERS = 300_000
"""Maximum number of characters read from a source. Lexing 100,000 takes a second, and longer sources contain data."""


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
    own_names = _own_names(raw)
    tokens, lines = [], []
    for index, (kind, value, line) in enumerate(raw):
        if kind == "skip":
            continue
        tokens.append(
            _normal(raw, index, own_names) if kind == "name" else {"text": "S", "number": "N"}.get(kind, value)
        )
        lines.append(line)
    kept_indexes = _without_lists(tokens)
    return Document(name, text, tuple(tokens[i] for i in kept_indexes), tuple(lines[i] for i in kept_indexes))


def _without_lists(tokens: list[str]) -> list[int]:
    """Indices of the tokens that remain when list literals of strings or numbers are reduced to one element.

    >>> _without_lists(["f", "(", "S", "S", ",", "S", ",", "S", ",", "N", ")"])
    [0, 1, 2, 8, 9, 10]
    """
    kept_indexes: list[int] = []
    for index, value in enumerate(tokens):
        if value in ("S", "N") and kept_indexes:
            distance = 2 if tokens[kept_indexes[-1]] == "," else 1
            if len(kept_indexes) >= distance and tokens[kept_indexes[-distance]] == value:
                del kept_indexes[len(kept_indexes) - distance + 1 :]
                continue
        kept_indexes.append(index)
    return kept_indexes


def _lex(text: str) -> list[tuple[str, str, int]]:
    """(kind, value, line) of the relevant tokens: name, text, number, word; `skip` for the rest of an import."""
    from pygments.lexers.python import PythonLexer  # type: ignore[import-untyped]
    from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String  # type: ignore[import-untyped]

    lexed: list[tuple[str, str, int]] = []
    line, importing, depth, at_statement_start = 1, False, 0, True
    for kind, value in PythonLexer(stripnl=False).get_tokens(text):
        first_line = line
        line += value.count("\n")
        if kind in Comment:
            continue
        if kind in Keyword.Namespace and at_statement_start:
            importing, depth = True, 0
        depth += (value in "([{") - (value in ")]}") if kind in Punctuation and len(value) == 1 else 0
        if "\n" in value and kind not in String and depth <= 0:
            importing, at_statement_start = False, True
            continue
        if not value.strip():
            continue
        if kind in String.Doc:
            category = ""
        elif importing:
            category = "skip"
        elif kind in String:
            category = "text"
        elif kind in Number:
            category = "number"
        elif kind in Name.Builtin.Pseudo and value != "self":
            category = "word"
        elif kind in Name:
            category = "name"
        else:
            category = "word" if kind in Keyword or kind in Operator or kind in Punctuation else ""
        at_statement_start = value == ";"
        lexed.append((category, value, first_line))
    return lexed


def _own_names(raw: list[tuple[str, str, int]]) -> frozenset[str]:
    """Names that the source defines itself: functions, classes, and assigned variables."""
    own_names = set()
    for index, (kind, value, _) in enumerate(raw):
        previous = raw[index - 1][1] if index else ""
        own_attribute = previous == "." and index > 1 and raw[index - 2][1] == "self"
        if kind == "name" and (previous in ("def", "class") or own_attribute):
            own_names.add(value)
    return frozenset(own_names)


def _normal(raw: list[tuple[str, str, int]], index: int, own_names: frozenset[str]) -> str:
    value = raw[index][1]
    previous = raw[index - 1][1] if index else ""
    following = raw[index + 1][1] if index + 1 < len(raw) else ""
    if value == "self":
        return "self"
    if value in own_names:
        return "V"
    if previous == ".":
        return value
    if following == "=" and previous in (",", "("):
        return value
    if following == "(" and previous not in ("def", "class"):
        return value
    return "V"
