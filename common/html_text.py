"""HTML as Markdown, as far as pages of text need it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_TAG = re.compile(
    r"</?(?:p|div|br|h[1-6]|ul|ol|li|table|tr|td|a|b|strong|em|i|code|pre|span|img|sub|sup)\b[^<>]*>", re.I
)
_NO_TEXT = ("script", "style", "head")
_AROUND = {"b": "**", "strong": "**", "em": "*", "i": "*", "code": "`"}
_INLINE = {**_AROUND, "sub": "_", "sup": "^"}
_BLOCKS = ("p", "div", "section", "article", "ul", "ol", "table", "blockquote")
_HEADINGS = {f"h{level}": f"\n\n{'#' * level} " for level in range(1, 7)}
_STARTS = {
    **_INLINE,
    **_HEADINGS,
    **dict.fromkeys(_BLOCKS, "\n\n"),
    "pre": "\n\n\n```\n",
    "li": "\n- ",
    "tr": "\n",
    "td": " | ",
    "th": " | ",
    "br": "\n",
}
_ENDS = {**_AROUND, **dict.fromkeys((*_BLOCKS, *_HEADINGS), "\n\n"), "pre": "\n```\n\n\n"}


def markdown_of(text: str) -> str:
    r"""A page as Markdown. What is Markdown already keeps its lines; tags in it are replaced.

    Links keep their text alone, pictures their description; scripts, styles and comments are dropped.

    >>> markdown_of("<h2>Goal</h2><p>Predict <b>y</b>.</p><ul><li>a</li><li>b</li></ul>")
    '## Goal\n\nPredict **y**.\n\n- a\n- b'
    >>> markdown_of("# Goal\n\nIf x < y, stop.")
    '# Goal\n\nIf x < y, stop.'
    """
    if not _TAG.search(text):
        return text.strip()
    text = _without_comments(text)
    parser = _Parser(keeps_lines=not re.match(r"\s*<", text))
    parser.feed(text)
    parser.close()
    lines = [line.rstrip() for line in "".join(parser.parts).splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _without_comments(text: str) -> str:
    """HTML without comments and declarations, in which `<` begins a tag that ends: the parser is slow with others."""
    first, *others = text.split("<!--")
    text = first + "".join(other.partition("-->")[2] for other in others)
    return re.sub(r"<(?!/?[a-zA-Z][^<>]*>)", "&lt;", re.sub(r"<[!?][^<>]*>", "", text))


class _Parser(HTMLParser):
    def __init__(self, keeps_lines: bool) -> None:
        super().__init__()
        self.keeps_lines = keeps_lines
        self.parts: list[str] = []
        self.silent = self.exact = 0

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.silent += tag in _NO_TEXT
        self.exact += tag == "pre"
        if tag == "img":
            self.parts.append(dict(attributes).get("alt") or "")
        elif not (self.exact and tag in _INLINE):
            self.parts.append(_STARTS.get(tag, ""))

    def handle_endtag(self, tag: str) -> None:
        if not (self.exact and tag in _INLINE):
            self.parts.append(_ENDS.get(tag, ""))
        self.silent = max(0, self.silent - (tag in _NO_TEXT))
        self.exact = max(0, self.exact - (tag == "pre"))

    def handle_data(self, data: str) -> None:
        if not self.silent:
            self.parts.append(data if self.exact or self.keeps_lines else re.sub(r"\s+", " ", data))
