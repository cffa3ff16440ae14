"""Clean text of agents, models, submissions and downloads for pages and the Prefect UI: nothing in it stays hidden."""

from __future__ import annotations

import re

CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
"""Control characters except tab and newline: they move a terminal's cursor. For a class of a regular expression."""
DIRECTIONS = "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""Characters that reverse the direction of the text around them, and characters at which some programs end a line."""
# Characters without a glyph, among them the tags that spell out text which only a program reads, and halves of
# characters, which no file takes.
_HIDDEN = "\u200b-\u200d\u2060-\u2065\ufeff\ud800-\udfff\U000e0000-\U000e007f"
_UNSAFE = re.compile(f"[{CONTROLS}{DIRECTIONS}{_HIDDEN}]")
_ANSI = re.compile("\x1b\\[[0-9;?]*[ -/]*[@-~]")
_MAX_MESSAGE_CHARACTERS = 4000


def visible(text: object) -> str:
    r"""`text` without terminal colours, and with a replacement character for each control or hidden one.

    >>> visible("\x1b[1mgo\x1b[0m\u202egnp.exe") == "go\N{REPLACEMENT CHARACTER}gnp.exe"
    True
    """
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", _ANSI.sub("", str(text).replace("\r\n", "\n")))


def clean(text: object) -> str:
    """`text` as with `visible`, truncated if very long."""
    shown = visible(text)
    return shown if len(shown) <= _MAX_MESSAGE_CHARACTERS else shown[:_MAX_MESSAGE_CHARACTERS] + " […]"


_MARKUP = str.maketrans(
    {"<": "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}", ">": "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"}
)


def inert(text: object) -> str:
    """`text` for programs that may interpret it as HTML, Markdown or Slack's markup, such as mail readers.

    It has no tags, no pictures and no addresses that are followed.

    >>> inert("![x](//a.example/b.png) <!channel>")
    '![x] (/ /a.example/b.png) ‹!channel›'
    """
    return clean(text).translate(_MARKUP).replace("](", "] (").replace("//", "/ /")
