"""Errors of the Kaggle source; each message is one line with the remedy."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

from common.errors import Kind
from common.foreign_errors import network_reason
from competitions.errors import DownloadError
from storage.sources.kaggle.credentials import redact

CREDENTIALS = (
    "provide them in one of three ways: a token in the environment variable KAGGLE_API_TOKEN, the "
    "variables KAGGLE_USERNAME and KAGGLE_KEY, or the file ~/.kaggle/kaggle.json (make them at "
    "https://www.kaggle.com/settings/api)"
)


class KaggleError(DownloadError):
    """A request failed, and repeating it will not help."""

    kind: Kind | None = "user input"


class NoCredentials(KaggleError):
    """Credentials are missing or invalid."""

    kind = "refused"


class RejectedCredentials(NoCredentials):
    """Kaggle does not accept the credentials."""


class NoAccess(KaggleError):
    """Kaggle does not give the archive to this account."""

    kind = "refused"


class RulesNotAccepted(NoAccess):
    """The account has not accepted the competition's rules."""


class NotFound(KaggleError):
    """Kaggle has no competition or notebook with that name."""

    kind = "missing"


class Unreachable(KaggleError):
    """All retries failed because of the network or the server. A later try may succeed."""

    kind = "network"


def competition_page(competition_id: str) -> str:
    """URL of the competition's page."""
    return f"https://www.kaggle.com/competitions/{competition_id}"


def rules_page(competition_id: str) -> str:
    """URL of the page where its rules are accepted."""
    return f"{competition_page(competition_id)}/rules"


def final_error(what: str, page: str, error: Exception) -> KaggleError | None:
    """The error to raise; None if a retry may succeed (network, 408, 429, 5xx). Secrets are redacted.

    `what` is the competition's id or a notebook's name, `page` its URL.
    """
    status, message = status_of(error)
    if status is None:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return _refused(
                f"{what}: Kaggle's certificate cannot be verified; is there a proxy? Set REQUESTS_CA_BUNDLE"
            )
        if "407 Proxy" in str(error):
            return _refused(
                f"{what}: the proxy on the way to Kaggle asks for a login; set HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT"
            )
        return None
    if status == 401:
        return RejectedCredentials(f"Kaggle does not accept the credentials; {CREDENTIALS}")
    if status == 403 and _rules(message):
        return RulesNotAccepted(f"{what}: the competition's rules are not accepted yet; accept them at {page}/rules")
    if status == 403:
        detail = f" ({message})" if message else ""
        return NoAccess(
            f"{what}: Kaggle refuses it to this account{detail}; see {page}, and whether the rules at {page}/rules are "
            "accepted"
        )
    if status == 404:
        return NotFound(f"{what}: Kaggle has nothing of that name; see {page}")
    if status in (408, 429) or status >= 500:
        return None
    return _refused(f"{what}: Kaggle answered {status}{f' ({message})' if message else ''}; see {page}")


def _refused(text: str) -> KaggleError:
    return KaggleError(text).of_kind("refused")


def describe(error: Exception) -> str:
    """A transient error in a few words, with secrets redacted."""
    status, message = status_of(error)
    if status is not None:
        return f"HTTP {status} {message}".rstrip()
    text = redact(" ".join(str(error).split()))
    reason = network_reason(text) or f"{type(error).__name__}: {text[:160]}"
    return f"{reason}, through the proxy {_proxy()} of HTTPS_PROXY" if "ProxyError(" in text and _proxy() else reason


def _proxy() -> str:
    """The address of the proxy on the way to Kaggle, without user and password; empty without one."""
    return urlsplit(os.environ.get("HTTPS_PROXY", "")).netloc.rpartition("@")[2]


def status_of(error: Exception) -> tuple[int | None, str]:
    """HTTP status and Kaggle's message. The status may be in the body of a response with status 200."""
    response: Any = getattr(error, "response", None)
    if response is None:
        return None, ""
    try:
        body = response.json()
    except (ValueError, OSError, RuntimeError):  # not JSON, truncated, or already consumed
        body = None
    details: dict[str, Any] = body if isinstance(body, dict) else {}
    if isinstance(details.get("error"), dict):
        details = details["error"]
    code, status = details.get("code"), int(response.status_code)
    if status < 400 and isinstance(code, int) and code >= 400:
        status = code
    if status < 400:
        return None, ""
    return status, redact(" ".join(str(details.get("message") or "").split()))[:200]


def _rules(message: str) -> bool:
    text = message.lower()
    return "accept" in text and ("rules" in text or "competition" in text)
