"""A connection to Kaggle: the official SDK with credentials, timeouts, and logs that show no signatures."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from typing import Any

from common.settings import get_settings
from storage.sources.kaggle import credentials
from storage.sources.kaggle.errors import CREDENTIALS, NoCredentials


@contextlib.contextmanager
def connect(headers: Mapping[str, str] | None = None, follow: bool = True) -> Iterator[Any]:
    """A `kagglesdk.KaggleClient` for the block; `headers` go with every request, and with the redirect of a download.

    KAGGLE_API_ENVIRONMENT chooses the server (TEST is http://localhost:7777). Without `follow`, a redirect raises
    `requests.TooManyRedirects`. Raises `NoCredentials` before anything is asked.
    """
    from kagglesdk.kaggle_client import KaggleClient

    found = credentials.find()
    if found is None:
        raise NoCredentials(f"no Kaggle credentials; {CREDENTIALS}")
    logger = logging.getLogger("urllib3.connectionpool")
    if _without_queries not in logger.filters:
        logger.addFilter(_without_queries)
    client = KaggleClient(
        username=found.username,
        password=found.key.get_secret_value() if found.key else None,
        api_token=found.token.get_secret_value() if found.token else None,
        user_agent="mlebench-pipeline",
    )
    with client:
        # The SDK sets no timeout, and a connection that has died in silence would be waited for forever.
        session = client.http_client()._session
        for prefix in ("https://", "http://"):
            session.mount(prefix, _adapter(get_settings().network_timeout))
        # Bytes as they are: with compression on the way, Content-Length would not be the archive's size.
        session.headers.update({"Accept-Encoding": "identity", **(headers or {})})
        if not follow:
            session.max_redirects = 0
        yield client


def _adapter(timeout: float) -> Any:
    from requests.adapters import HTTPAdapter

    class Patient(HTTPAdapter):
        def send(self, request: Any, **options: Any) -> Any:  # type: ignore[override]
            options["timeout"] = options.get("timeout") or timeout
            return super().send(request, **options)

    return Patient()


def _without_queries(record: logging.LogRecord) -> bool:
    """A filter for urllib3's debug lines: the queries of signed URLs are secrets."""
    if isinstance(record.args, tuple):
        record.args = tuple(arg.split("?", 1)[0] if isinstance(arg, str) else arg for arg in record.args)
    return True
