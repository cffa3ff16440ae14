"""Object stores: how clients are configured, how long they retry, and what their errors mean.

Endpoint and credentials come from the usual AWS variables and files; `configure` overrides them. Everything that opens
a store does so through fsspec, whose defaults for S3 are set here.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import Any

# Standard mode waits up to 20 s between attempts: a server that restarts is back before the last of them.
_PATIENT = {"retries": {"mode": "standard", "max_attempts": 8}, "connect_timeout": 10, "read_timeout": 60}
_QUICK = {"retries": {"mode": "standard", "max_attempts": 1}, "connect_timeout": 5, "read_timeout": 10}
# Trying again does not make room or grant access.
_LASTING = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}


@dataclass(frozen=True)
class S3Options:
    """How S3 is reached, where that differs from the usual AWS variables and files."""

    endpoint_url: str | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = None

    def __repr__(self) -> str:  # the credentials are secret
        return f"S3Options(endpoint_url={self.endpoint_url!r})"


_options = S3Options()  # global as fsspec's defaults are; kept until fsspec is imported, which takes 0.2 s


def configure(options: S3Options) -> None:
    """Have this process reach S3 as `options` say. Idempotent and cheap."""
    global _options
    _options = options


def set_fsspec_defaults() -> None:
    """Set fsspec's defaults for S3 as `configure` was told. Idempotent and cheap: call it before opening a URL."""
    from fsspec.config import conf

    given: dict[str, Any] = {
        "endpoint_url": _options.endpoint_url
        or os.environ.get("AWS_ENDPOINT_URL_S3")
        or os.environ.get("AWS_ENDPOINT_URL"),
        "key": _options.access_key_id,
        "secret": _options.secret_access_key,
    }
    # Other processes write below the same root: a cached listing would be out of date.
    options = {"config_kwargs": _PATIENT, "use_listings_cache": False}
    options |= {name: value for name, value in given.items() if value}
    for protocol in ("s3", "s3a"):
        conf[protocol] = {**conf.get(protocol, {}), **options}


def quick_options(url: str) -> dict[str, Any]:
    """Options of a client that gives up soon, for checks before work starts."""
    return {"config_kwargs": _QUICK} if url.startswith(("s3://", "s3a://")) else {}


def is_transient(error: BaseException) -> bool:
    """Whether a retry may succeed: true for network and server failures, false for a full disk or denied access."""
    if isinstance(error, PermissionError) or getattr(error, "errno", None) in _LASTING:
        return False
    return isinstance(error, OSError | TimeoutError) or _is_connection_error(error)


def _is_connection_error(error: BaseException) -> bool:
    """Botocore's and aiohttp's errors are not OSErrors, and may come from a worker's process."""
    try:
        from aiohttp import ClientError
        from botocore.exceptions import ConnectionError, HTTPClientError
    except ImportError:  # no S3 here
        return False
    return isinstance(error, ConnectionError | HTTPClientError | ClientError)


def describe_error(error: BaseException) -> str:
    """A store's error and its remedy in one line."""
    text = (str(error).splitlines() or [""])[0]
    text = type(error).__name__ if text in ("", "None") else text
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        return f"{text}; make room with mlebench gc, or choose another store"
    refused = isinstance(error, PermissionError) and getattr(error, "filename", None) is None
    if refused or "credentials" in text.lower() or "AccessKeyId" in text:
        return f"{text}; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    if _is_connection_error(error):
        return f"{text}; is the server up, and AWS_ENDPOINT_URL right?"
    if "bucket does not exist" in text or "NoSuchBucket" in text:
        return f"{text}; create the bucket"
    return text
