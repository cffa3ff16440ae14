"""Content keys. Equal keys mean equal results, so finished work under the same key is reused."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def content_key(*parts: Any) -> str:
    """Hash of JSON values, as 16 hexadecimal digits.

    >>> content_key("a", 1) == content_key("a", 1), content_key("a", 1) == content_key("a", 2)
    (True, False)
    """
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
