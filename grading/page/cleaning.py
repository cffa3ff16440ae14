"""Make text that was written by agents or tools safe to show."""

from __future__ import annotations

import re

# Control characters can move a terminal's cursor, and bidirectional characters can reorder the text around them.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_ANSI = re.compile("\x1b\\[[0-9;?]*[ -/]*[@-~]")
_LONGEST_MESSAGE = 4000


def clean(text: object) -> str:
    """`text` without control characters and terminal colours, truncated if very long."""
    visible = _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", _ANSI.sub("", str(text).replace("\r\n", "\n")))
    return visible if len(visible) <= _LONGEST_MESSAGE else visible[:_LONGEST_MESSAGE] + " […]"
