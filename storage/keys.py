"""Content keys. Equal keys mean equal results, so finished work under the same key is reused."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from common import plain_json


def content_key(*parts: Any) -> str:
    """Hash of JSON values, as 16 hexadecimal digits.

    >>> content_key("a", 1) == content_key("a", 1), content_key("a", 1) == content_key("a", 2)
    (True, False)
    """
    text = plain_json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def content_key_of_rows(name: str, rows: Iterable[tuple[Any, ...]]) -> str:
    """The same as ``content_key(name, list(rows))``, with one row in memory at a time.

    >>> content_key_of_rows("a", iter([(1, "x"), (2, "y")])) == content_key("a", [(1, "x"), (2, "y")])
    True
    """
    digest = hashlib.blake2b(f"[{plain_json.dumps(name)},[".encode(), digest_size=8)
    separator = b""
    for row in rows:
        digest.update(separator + plain_json.dumps(row, separators=(",", ":")).encode())
        separator = b","
    digest.update(b"]]")
    return digest.hexdigest()
