"""Connections to Kaggle: the official SDK with credentials, timeouts, and signed URLs removed from logs."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from typing import Any

from common.patience import request_timeout
from storage.sources.kaggle import credentials
from storage.sources.kaggle.credentials import limit_waiting
from storage.sources.kaggle.errors import CREDENTIALS, NoCredentials
from storage.sources.source import NETWORK_TIMEOUT


@contextlib.contextmanager
def connect(
    timeout: float = NETWORK_TIMEOUT, headers: Mapping[str, str] | None = None, follow: bool = True
) -> Iterator[Any]:
    """Yield a `kagglesdk.KaggleClient`. KAGGLE_API_ENVIRONMENT selects the server, as in Kaggle's own client.

    Args:
        timeout: seconds without data after which a request fails; less for a short patience.
        headers: sent with every request and redirect.
        follow: whether to follow redirects; otherwise they raise `requests.TooManyRedirects`.

    Raises:
        NoCredentials: there are no credentials. Raised before any request.
    """
    from kagglesdk.kaggle_client import KaggleClient

    credential = credentials.find()
    if credential is None:
        raise NoCredentials(f"no Kaggle credentials; {CREDENTIALS}")
    logger = logging.getLogger("urllib3.connectionpool")
    if _without_queries not in logger.filters:
        logger.addFilter(_without_queries)
    client = KaggleClient(
        username=credential.username,
        password=credential.key.get_secret_value() if credential.key else None,
        api_token=credential.token.get_secret_value() if credential.token else None,
        user_agent="mlebench-pipeline",
    )
    with client:
        session = limit_waiting(client, request_timeout(timeout))
        # No transfer compression: with it, Content-Length would not be the archive's size.
        session.headers.update({"Accept-Encoding": "identity", **(headers or {})})
        if not follow:
            session.max_redirects = 0
        yield client


def _without_queries(record: logging.LogRecord) -> bool:
    """A logging filter that removes the queries of URLs, because those of signed URLs are secret."""
    if isinstance(record.args, tuple):
        record.args = tuple(arg.split("?", 1)[0] if isinstance(arg, str) else arg for arg in record.args)
    return True
