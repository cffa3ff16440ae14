"""A Prefect server as a background process, and questions to its API.

The API is asked with `urllib`: importing Prefect takes seconds, and it reads its settings once.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

import psutil

from common import serving
from common.guard import HOST, basic, listen, origin
from deployments.background import BackgroundProcesses, ServiceError
from flows.prefect_server import MODULE

CREDENTIAL = "PREFECT_API_AUTH_STRING"
"""The variable with the login of programs that use a Prefect server."""


def ask(url: str, body: Any = None, method: str | None = None, timeout: float = 60, credential: str = "") -> Any:
    """The answer of the API at a URL of this machine, parsed; a body is sent as JSON in a POST request.

    Raises `urllib.error.URLError` if the server does not answer within `timeout` seconds, or answers with an error.
    """
    data = None if body is None else json.dumps(body, allow_nan=False).encode()
    headers = {"Content-Type": "application/json"} | ({"Authorization": basic(credential)} if credential else {})
    request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy must not see the login
    with opener.open(request, timeout=timeout) as answer:
        return json.loads(answer.read() or b"null")


def answers(url: str) -> bool:
    """Whether a server of this machine answers, even if it only asks for a login."""
    try:
        ask(url)
    except urllib.error.HTTPError as error:
        return error.code == 401
    return True


def start_server(
    processes: BackgroundProcesses, port: int, env: Mapping[str, str], database: str | None = None
) -> psutil.Process:
    """Start a Prefect server as the service `server`, with SQLite or this database; returns once it answers.

    Its login is that of its clients in `env`, PREFECT_API_AUTH_STRING. Raises `ServiceError` if the port is taken, or
    if it does not answer.
    """
    settings = {**env, "PREFECT_SERVER_API_AUTH_STRING": env[CREDENTIAL]}
    # Leases of concurrency slots are kept in files: in memory they would be lost with the server, and flow runs fail.
    settings["PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE"] = "prefect.server.concurrency.lease_storage.filesystem"
    if database:
        settings["PREFECT_SERVER_DATABASE_CONNECTION_URL"] = async_url(database)
    try:
        listener = listen(port)
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise ServiceError(f"port {port} of {HOST} cannot be taken ({reason}); choose another one") from error
    command = serving.command(MODULE, "--socket", str(listener.fileno()))
    health = f"{origin(port)}/api/health"
    return processes.start("server", command, settings, lambda: bool(ask(health)), listener)


def async_url(url: str) -> str:
    """A PostgreSQL URL with the driver that Prefect's server needs; other URLs are returned unchanged.

    >>> async_url("postgres://me@db/prefect")
    'postgresql+asyncpg://me@db/prefect'
    """
    scheme, separator, rest = url.partition("://")
    return f"postgresql+asyncpg{separator}{rest}" if scheme in ("postgres", "postgresql") else url
