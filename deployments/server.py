"""A Prefect server as a background process, and questions to its API.

The API is asked with `urllib`: importing Prefect takes seconds, and it reads its settings once.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping
from typing import Any

import psutil

from common import serving
from deployments.background import BackgroundProcesses

HOST = "127.0.0.1"  # the server has no password, so other machines must not reach it


def ask(url: str, body: Any = None, method: str | None = None, timeout: float = 60) -> Any:
    """The answer of the API at a URL, parsed; a body is sent as JSON in a POST request.

    Raises `urllib.error.URLError` if the server does not answer within `timeout` seconds, or answers with an error.
    """
    data = None if body is None else json.dumps(body, allow_nan=False).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)  # noqa: S310
    with urllib.request.urlopen(request, timeout=timeout) as answer:  # noqa: S310
        return json.loads(answer.read() or b"null")


def start_server(
    processes: BackgroundProcesses, port: int, env: Mapping[str, str], database: str | None = None
) -> psutil.Process:
    """Start a Prefect server as the service `server`, with SQLite or this database; returns once it answers.

    Raises `ServiceError` if it does not.
    """
    settings = dict(env)
    # In memory, leases of concurrency slots would be lost with the server, and flow runs would fail.
    settings["PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE"] = "prefect.server.concurrency.lease_storage.filesystem"
    if database:
        settings["PREFECT_SERVER_DATABASE_CONNECTION_URL"] = async_url(database)
    command = serving.command("prefect", "server", "start", "--host", HOST, "--port", str(port))
    return processes.start("server", command, settings, lambda: bool(ask(f"http://{HOST}:{port}/api/health")))


def async_url(url: str) -> str:
    """A PostgreSQL URL with the driver that Prefect's server needs; other URLs are returned unchanged.

    >>> async_url("postgres://me@db/prefect")
    'postgresql+asyncpg://me@db/prefect'
    """
    scheme, separator, rest = url.partition("://")
    return f"postgresql+asyncpg{separator}{rest}" if scheme in ("postgres", "postgresql") else url
