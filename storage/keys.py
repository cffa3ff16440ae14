"""Content keys: equal keys mean equal results, so work under a key that is done need not be done again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from competitions.competition import Competition
from competitions.editions import Edition


def content_key(*parts: Any) -> str:
    """Hash of JSON values: 16 hexadecimal digits.

    >>> content_key("a", 1) == content_key("a", 1), content_key("a", 1) == content_key("a", 2)
    (True, False)
    """
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def prepared_key(
    competition: Competition, download_hash: str, edition: Edition, params: Mapping[str, Any] | None = None
) -> str:
    """Key of a prepared dataset: download, code of the competition, edition and parameters."""
    return content_key(download_hash, competition.fingerprint("prepare"), edition, competition.params(params))
