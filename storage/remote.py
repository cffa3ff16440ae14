"""Object stores: configuration of clients, retries, and explanations of errors.

Endpoint and credentials come from the usual AWS variables and files; `configure` overrides them. All code opens stores
with fsspec, whose defaults for S3 are set here.
"""

from __future__ import annotations

import base64
import hashlib
import os
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

from common.causes import CAUSES, cause_of, explain
from common.concurrency import bounded_map
from common.foreign_errors import code_and_status
from common.patience import patience, request_timeout
from storage.bounded import bounded_session

# Many servers refuse the checksums that botocore adds to uploads by default, or store them as part of the object.
# Without them, botocore signs the SHA-256 of what it sends, which every server compares.
_CHECKSUMS = {"request_checksum_calculation": "when_required", "response_checksum_validation": "when_required"}
# Standard mode waits up to 20 s between retries, so a server can restart before the last one. With botocore's usual ten
# connections, most threads of `storage.datasets` that upload or fetch would wait for one.
RETRYING_CLIENT = {
    **_CHECKSUMS,
    "retries": {"mode": "standard", "max_attempts": 8},
    "connect_timeout": 10,
    "read_timeout": 60,
    "max_pool_connections": 64,
    "http_session_cls": bounded_session,
}
QUICK_CLIENT: dict[str, Any] = {
    **_CHECKSUMS,
    "retries": {"mode": "standard", "max_attempts": 1},
    "connect_timeout": 5,
    "read_timeout": 10,
    "http_session_cls": bounded_session,
}


@dataclass(frozen=True)
class S3Options:
    """Options for S3 that override the usual AWS variables and files."""

    endpoint_url: str | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = None

    def __repr__(self) -> str:  # does not show the credentials
        return f"S3Options(endpoint_url={self.endpoint_url!r})"


_R2 = ".r2.cloudflarestorage.com"
"""Part of the addresses of the only service that wants parts of equal size; see `storage.multipart`."""
_REGION = "set AWS_DEFAULT_REGION to the region of the bucket or server"
_ADVICE = {
    "AuthorizationHeaderMalformed": _REGION,
    "PermanentRedirect": _REGION,
    "IllegalLocationConstraintException": _REGION,
    "SecondLevelDomainForbidden": "set addressing_style = virtual below s3 in ~/.aws/config",
}
"""What to do about error codes of servers whose message does not say so."""
_PATIENT_SECONDS = 120.0
"""With less patience, clients try only twice."""
MAX_REMOVALS = 32
"""Maximum number of objects that are removed at a time, if they are removed one by one."""

_options = S3Options()  # global like fsspec's defaults; kept until fsspec is imported, which takes 0.2 s


def configure(options: S3Options) -> None:
    """Use `options` for S3 in this process. Idempotent and cheap."""
    global _options
    _options = options


def set_fsspec_defaults() -> None:
    """Set fsspec's defaults for S3 to the options of `configure`. Idempotent and cheap. Call before opening a URL."""
    from fsspec.config import conf

    endpoint = _options.endpoint_url or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    values: dict[str, Any] = {
        "endpoint_url": endpoint,
        "key": _options.access_key_id,
        "secret": _options.secret_access_key,
        "fixed_upload_size": _R2 in (endpoint or ""),
    }
    # Other processes write below the same root, so a cached listing would be out of date.
    # The settings are copied, because botocore changes the settings of retries.
    config = deepcopy(RETRYING_CLIENT) if patience() >= _PATIENT_SECONDS else {**RETRYING_CLIENT, **_quick_client()}
    options = {"config_kwargs": config, "use_listings_cache": False}
    options |= {name: value for name, value in values.items() if value}
    for protocol in ("s3", "s3a"):
        conf[protocol] = {**conf.get(protocol, {}), **options}


def quick_options(url: str) -> dict[str, Any]:
    """Options of a client with short timeouts, for checks before work starts."""
    return {"config_kwargs": _quick_client()} if url.startswith(("s3://", "s3a://")) else {}


def _quick_client() -> dict[str, Any]:
    config = deepcopy(QUICK_CLIENT)
    return config | {name: request_timeout(config[name]) for name in ("connect_timeout", "read_timeout")}


def is_transient(error: BaseException) -> bool:
    """Whether a retry may succeed; see the table in `common.causes`."""
    return cause_of(error).passes


def describe_error(error: BaseException) -> str:
    """One line with a store's error and its remedy."""
    text = explain(error)
    code, _ = code_and_status(error.__cause__ or error)
    if code in _ADVICE:
        return f"{text}; {_ADVICE[code]}"
    refused = cause_of(error).kind == "refused" and getattr(error, "filename", None) is None
    if refused or "AccessKeyId" in text:
        advice = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        if "Forbidden" in text:  # the answer to a HEAD request, which cannot say why
            advice += ", and the clock of this machine if it is wrong"
        return f"{text.removesuffix('; ' + CAUSES['refused'].remedy)}; {advice}"
    if "bucket does not exist" in text or "NoSuchBucket" in text:
        return f"{text.removesuffix('; ' + CAUSES['missing'].remedy)}; create the bucket"
    return text


def remove_from_s3(fs: Any, path: str) -> None:
    """Remove an object, and all objects below it, page by page. They need not exist.

    Objects are removed one by one if the server refuses to remove many with one request. Raises `OSError` if the server
    does not remove one of them, which `fs.rm` would not report.
    """
    from competitions.preparing.archives.listing import s3_pages

    bucket, key, _ = fs.split_path(path)
    fs.call_s3("delete_object", Bucket=bucket, Key=key)
    fs.s3.meta.events.register("before-call.s3.DeleteObjects", _with_md5, unique_id="mlebench-md5")
    remove = _remove_together
    for page in s3_pages(fs, path):
        keys = [entry["Key"] for entry in page]
        try:
            remove(fs, bucket, keys)
        except Exception as error:
            if remove is _remove_each or cause_of(error).kind != "user input":
                raise
            remove = _remove_each
            remove(fs, bucket, keys)
    fs.invalidate_cache()


def _with_md5(params: dict[str, Any], **_: Any) -> None:
    """Send the MD5 of a request instead of its CRC32, as clients did until 2025: some servers know nothing else."""
    digest = hashlib.md5(params["body"], usedforsecurity=False).digest()
    params["headers"]["Content-MD5"] = base64.b64encode(digest).decode()
    params["context"].pop("checksum", None)


def _remove_together(fs: Any, bucket: str, keys: list[str]) -> None:
    if not keys:
        return
    delete = {"Objects": [{"Key": key} for key in keys], "Quiet": True}
    for entry in fs.call_s3("delete_objects", Bucket=bucket, Delete=delete).get("Errors", ()):
        error = PermissionError if entry.get("Code") == "AccessDenied" else OSError
        raise error(f"{bucket}/{entry.get('Key')} cannot be removed: {entry.get('Message') or entry.get('Code')}")


def _remove_each(fs: Any, bucket: str, keys: list[str]) -> None:
    calls = ((0, partial(fs.call_s3, "delete_object", Bucket=bucket, Key=key)) for key in keys)
    for _ in bounded_map(calls, count=MAX_REMOVALS, total=0):
        pass
