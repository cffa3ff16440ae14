"""Markdown in which only our own markup has an effect: foreign text is escaped where the text is composed.

A `Markdown` is a text whose markup is our own. Every other text that is formatted into it, joined or added is escaped:

    Markdown("**{}** says: {}").format(competition_id, message)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Self
from urllib.parse import quote

from markupsafe import Markup

from common.cleaning import clean

_ACTIVE = re.compile(r"([\\`*_{}\[\]()#+!|~$-])")
_NUMBERED = re.compile(r"^(\d{1,9})([.)])(?=\s|\Z)")  # would begin a list
# Programs turn addresses into links, even if their characters are escaped, but never in code.
_ADDRESS = re.compile(r"([^\s`|\\]*(?:://|www\.|@)[^\s`|\\]*)", re.IGNORECASE)


class Markdown(Markup):
    """Our own Markdown. `format`, `%`, `+` and `join` escape other texts, as markupsafe does for HTML."""

    __slots__ = ()

    @classmethod
    def escape(cls, s: Any, /) -> Self:
        """`s` as Markdown that shows it on one line; one that is Markdown already stays as it is."""
        return s if isinstance(s, cls) else cls(escape(s))


def escape(text: object) -> str:
    r"""`text` on one line, such that Markdown and HTML show it as it is; addresses become code, never links.

    >>> print(escape("_a_ <b> ![x](http://c.example/d.png)"))
    \_a\_ &lt;b&gt; `![x](http://c.example/d.png)`
    """
    parts = _ADDRESS.split(" ".join(clean(text).split()))
    shown = "".join(code(part) if index % 2 else _escaped(part) for index, part in enumerate(parts))
    return _NUMBERED.sub(r"\1\\\2", shown)


def _escaped(text: str) -> str:
    return _ACTIVE.sub(r"\\\1", text.replace("&", "&amp;")).replace("<", "&lt;").replace(">", "&gt;")


def code(text: object) -> Markdown:
    """`text` on one line as code.

    >>> print(code("a`b"))
    ``a`b``
    """
    folded = " ".join(clean(text).split())
    fence = "`" * (1 + max(map(len, re.findall("`+", folded)), default=0))
    space = " " if folded.startswith("`") or folded.endswith("`") else ""
    return Markdown(f"{fence}{space}{folded}{space}{fence}")


def link(text: object, address: str) -> Markdown:
    """A link to `address` if that is an http or https URL; otherwise only the text.

    >>> str(link("report", "http://host/c (d)")), str(link("report", "javascript:x"))
    ('[report](http://host/c%20%28d%29)', 'report')
    """
    if not address.startswith(("http://", "https://")):
        return Markdown.escape(text)
    return Markdown("[{}]({})").format(text, Markdown(quote(address, safe="%/:?#@!$&'*+,;=~[]")))


def table(header: Sequence[object], rows: Iterable[Sequence[object]]) -> list[Markdown]:
    """The lines of a table. Cells that are no `Markdown` are escaped."""
    lines = [header, [Markdown("---")] * len(header), *rows]
    return [Markdown("| {} |").format(Markdown(" | ").join(map(Markdown.escape, row))) for row in lines]
