"""Locations: local paths and `file://` URLs, which are two spellings of the same place.

A plain path is taken as it is. A `file://` URL is percent-encoded (RFC 8089), and is the form in which local places
travel between processes, because it has one spelling for every path.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote_to_bytes

from common.errors import UsageError

_LOCAL = re.compile(r"(?:file|local):(?://(?:localhost(?=/|\Z))?)?", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ALMOST_URL = re.compile(r"(s3a?|gs|gcs|az|abfss?|https?):/?(?!/)(.*)", re.IGNORECASE)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.:-]+://")


def local_path(location: str) -> Path | None:
    """The path of a plain path or `file://` URL, None for other URLs. It is neither made absolute nor looked up.

    >>> local_path("file:///data/my%20store"), local_path("/data/my%20store"), local_path("s3://bucket")
    (PosixPath('/data/my store'), PosixPath('/data/my%20store'), None)
    """
    if prefix := _LOCAL.match(location):
        return Path(os.fsdecode(unquote_to_bytes(location[prefix.end() :])))
    return None if _SCHEME.match(location) else Path(location)


def absolute_url(location: str) -> str:
    """The one URL of a plain path or URL, without a trailing slash. `~` is the home directory, links are followed.

    Raises `UsageError` if it is empty, has a line end in it, is almost a URL, or there is no home directory for `~`.
    """
    if not location.strip() or _CONTROL.search(location):
        raise UsageError(f"{location!r} is neither a directory nor a URL")
    if almost := _ALMOST_URL.match(location):
        scheme, rest = almost.groups()
        raise UsageError(f"{location} is no URL; write {scheme}://{rest}, or ./{location} for a directory of that name")
    path = local_path(location)
    if path is None:
        scheme, rest = location.split("://", 1)
        return f"{scheme.lower()}://{rest.rstrip('/')}"
    try:
        return path.expanduser().resolve().as_uri()
    except (OSError, RuntimeError) as error:  # no home, a deleted working directory, links that form a circle
        raise UsageError(f"{location}: {error}; write the whole path of the directory") from error
