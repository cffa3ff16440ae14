"""Kaggle credentials: found in the same way as by the official client, and redacted from messages."""

from __future__ import annotations

import base64
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from common.errors import UserError
from common.plain_json import read_json
from common.texts import read_text
from storage.sources.source import NETWORK_TIMEOUT

CONNECT_SECONDS = 10.0
_secrets: set[str] = set()  # global, because every message must redact every credential that was used
_QUERY = re.compile(r"\?[^\s'\")>]+")  # contains the signature of signed URLs
_HEADER = re.compile(r"\b(Bearer|Basic)\s+\S+", re.IGNORECASE)


@dataclass(frozen=True)
class Credentials:
    """A token, or a user name and key. The repr is masked."""

    token: SecretStr | None = None
    username: str | None = None
    key: SecretStr | None = None


def find() -> Credentials | None:
    """The credentials of this environment; None if there are none.

    In the order of the official client: the token in KAGGLE_API_TOKEN (or in the file that it names, or in
    ~/.kaggle/access_token); KAGGLE_USERNAME and KAGGLE_KEY; kaggle.json; the login of `kaggle auth login`. Raises
    `UserError` for a file with credentials that cannot be read.
    """
    token = _token()
    if token:
        _hide(token)
        return Credentials(token=SecretStr(token))
    username, key = os.environ.get("KAGGLE_USERNAME"), os.environ.get("KAGGLE_KEY")
    if not (username and key):
        content = _kaggle_json()
        username, key = username or content.get("username"), key or content.get("key")
    if username and key:
        _hide(str(key), base64.b64encode(f"{username}:{key}".encode()).decode())
        return Credentials(username=str(username), key=SecretStr(str(key)))
    token = _login()
    if token:
        _hide(token)
        return Credentials(token=SecretStr(token))
    return None


def redact(text: str) -> str:
    """`text` without secrets: credentials in use, authorization headers, and queries of URLs.

    >>> redact("GET https://host/a.zip?Signature=abc failed, Authorization: Bearer xyz")
    'GET https://host/a.zip?... failed, Authorization: Bearer ***'
    """
    for secret in sorted(_secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return _HEADER.sub(r"\1 ***", _QUERY.sub("?...", text))


def limit_waiting(client: Any, timeout: float) -> Any:
    """Give the requests of a client of the SDK a timeout, without which they would wait forever; returns its session.

    `timeout` is that of an answer. A connection is made within seconds, or not at all.
    """
    from requests.adapters import HTTPAdapter

    class Limited(HTTPAdapter):
        def send(self, request: Any, **options: Any) -> Any:  # type: ignore[override]
            options["timeout"] = options.get("timeout") or (min(timeout, CONNECT_SECONDS), timeout)
            return super().send(request, **options)

    session = client.http_client()._session
    for prefix in ("https://", "http://"):
        session.mount(prefix, Limited())
    return session


def _hide(*secrets: str) -> None:
    _secrets.update(secret for secret in secrets if len(secret) > 3)


def _token() -> str | None:
    from kagglesdk.kaggle_env import get_access_token_from_env

    try:
        token: str | None = get_access_token_from_env()[0]
    except (OSError, ValueError):
        # The client first tries the token as a file name, and the error for a long name would contain the token. It
        # reads only UTF-8.
        token = os.environ.get("KAGGLE_API_TOKEN") or read_text(_home() / ".kaggle" / "access_token")
    return token.strip("\N{ZERO WIDTH NO-BREAK SPACE} \t\r\n\0") if token else None


def _home() -> Path:
    return Path(os.path.expanduser("~"))  # noqa: PTH111  # unlike `Path.home`, no error where there is no home


def _kaggle_json() -> dict[str, Any]:
    home = _home()
    folders = [
        Path(os.environ["KAGGLE_CONFIG_DIR"]) if os.environ.get("KAGGLE_CONFIG_DIR") else None,
        home / ".kaggle",
        Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "kaggle",
    ]
    for path in (folder / "kaggle.json" for folder in folders if folder):
        if os.path.isfile(path):  # noqa: PTH113  # unlike `Path.is_file`, no error for a folder that cannot be read
            content = read_json(path)
            if not isinstance(content, dict):
                raise UserError(f"{path} is not what Kaggle's settings page gives: create a token there")
            return content
    return {}


def _login() -> str | None:
    """The access token of `kaggle auth login`, renewed if it has expired."""
    from kagglesdk.kaggle_client import KaggleClient
    from kagglesdk.kaggle_creds import KaggleCredentials

    with KaggleClient() as client:
        limit_waiting(client, NETWORK_TIMEOUT)
        login = KaggleCredentials.load(client=client)
        token: str | None = login.get_access_token() if login else None
    return token
