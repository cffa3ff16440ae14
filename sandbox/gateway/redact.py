"""Keeping keys out of whatever agents, logs and transcripts get to see."""

from __future__ import annotations

import re
from collections.abc import Iterable

HIDDEN = b"[hidden]"
# Providers show parts of a key in their errors.
_KEY = re.compile(rb"\b(?:sk|key|pk)-[A-Za-z0-9_*.\-]{6,}")


class Redactor:
    """Replaces keys."""

    def __init__(self, keys: Iterable[str]) -> None:
        """Know the keys."""
        self._keys = sorted((key.encode() for key in keys if key), key=len, reverse=True)

    def hide(self, content: bytes, *, error: bool = False) -> bytes:
        """The content without keys; in errors without anything that looks like one."""
        for key in self._keys:
            content = content.replace(key, HIDDEN)
        return _KEY.sub(HIDDEN, content) if error else content
