"""Remove API keys from responses, logs and transcripts."""

from __future__ import annotations

import re
from collections.abc import Iterable

HIDDEN = b"[hidden]"
# Providers quote parts of a key in their errors.
_KEY = re.compile(rb"\b(?:sk|key|pk)-[A-Za-z0-9_*.\-]{6,}|\bAIza[A-Za-z0-9_*.\-]{6,}|(?<=[?&]key=)[^&\s\"'\\]+")


class Redactor:
    """Replaces known keys in content."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._keys = sorted((key.encode() for key in keys if key), key=len, reverse=True)

    def hide(self, content: bytes, *, error: bool = False) -> bytes:
        """The content without the known keys; with `error` also without anything that looks like a key."""
        for key in self._keys:
            content = content.replace(key, HIDDEN)
        return _KEY.sub(HIDDEN, content) if error else content
