"""Object stores: how clients are made, how patient they are, and what their errors mean.

Endpoint and credentials come from the usual AWS variables and files; settings (`MLEBENCH_S3_ENDPOINT_URL` ...) come
before them. Everything that opens a store does so through fsspec, whose defaults `configure` sets for this process.
"""

from __future__ import annotations

import errno
import os
from typing import Any

from common.settings import get_settings

# Standard mode waits up to 20 s between attempts: a server that restarts is back before the last of them.
_PATIENT = {"retries": {"mode": "standard", "max_attempts": 8}, "connect_timeout": 10, "read_timeout": 60}
_QUICK = {"retries": {"mode": "standard", "max_attempts": 1}, "connect_timeout": 5, "read_timeout": 10}
# Trying again does not make room or grant access.
_LASTING = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}


def configure() -> None:
    """Set fsspec's defaults for S3 in this process. Idempotent and cheap: call it before opening a URL."""
    from fsspec.config import conf

    settings = get_settings()
    given: dict[str, Any] = {
        "endpoint_url": settings.s3_endpoint_url
        or os.environ.get("AWS_ENDPOINT_URL_S3")
        or os.environ.get("AWS_ENDPOINT_URL"),
        "key": settings.s3_access_key_id and settings.s3_access_key_id.get_secret_value(),
        "secret": settings.s3_secret_access_key and settings.s3_secret_access_key.get_secret_value(),
    }
    # Other processes write below the same root: a listing that is remembered is a listing that is wrong.
    options = {"config_kwargs": _PATIENT, "use_listings_cache": False}
    options |= {name: value for name, value in given.items() if value}
    for protocol in ("s3", "s3a"):
        conf[protocol] = {**conf.get(protocol, {}), **options}


def quick_options(url: str) -> dict[str, Any]:
    """Options of a client that gives up soon, for questions that are asked before work starts."""
    return {"config_kwargs": _QUICK} if url.startswith(("s3://", "s3a://")) else {}


def passes(error: BaseException) -> bool:
    """Whether trying again later may help: a network or a server that is away, but no full disk and no refusal."""
    if isinstance(error, PermissionError) or getattr(error, "errno", None) in _LASTING:
        return False
    return isinstance(error, OSError | TimeoutError) or _is_connection_error(error)


def _is_connection_error(error: BaseException) -> bool:
    """Botocore's and aiohttp's errors are no OSErrors, and may come from a worker's process."""
    try:
        from aiohttp import ClientError
        from botocore.exceptions import ConnectionError, HTTPClientError
    except ImportError:  # no S3 here
        return False
    return isinstance(error, ConnectionError | HTTPClientError | ClientError)


def explain(error: BaseException) -> str:
    """A store's error in one line that says what to do."""
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
