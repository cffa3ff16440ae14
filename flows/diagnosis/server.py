"""Checks of the Prefect server for `mlebench doctor`: that it answers, and whether it is closed to others.

Whoever may create flow runs on it can start programs on its workers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from common.guard import basic
from common.units import listed
from flows.diagnosis.health import Finding
from flows.fleet.template import open_to

_REQUEST_SECONDS = 5.0
_FOREIGN_HOST = "foreign.invalid"
_REMEDY = "start it as `make up` does, or put a proxy in front of it that refuses them"


def check_prefect() -> Iterator[Finding]:
    """The configured Prefect server answers, and only its users. Without one, a temporary one starts, as in a run."""
    url = os.environ.get("PREFECT_API_URL", "").rstrip("/")
    if not url:
        yield _check_temporary()
        return
    try:
        if (status := _status(f"{url}/health")) != 200:
            raise OSError(f"HTTP status {status}")
    except OSError as error:
        yield Finding("prefect", "fail", f"{url}: {error}", "start it (prefect server start), or unset PREFECT_API_URL")
        return
    login = _login()
    if _status(f"{url}/admin/version", **login) in (401, 403):
        yield Finding(
            "prefect",
            "fail",
            f"{url} refuses the login of PREFECT_API_AUTH_STRING" if login else f"{url} asks for a login",
            "set PREFECT_API_AUTH_STRING to its USER:PASSWORD; that of `make up` is in .mlebench/login",
        )
        return
    yield Finding("prefect", "ok", url)
    if _status(f"{url}/admin/version") == 200:
        set_it = "set PREFECT_SERVER_API_AUTH_STRING=USER:PASSWORD for it, and PREFECT_API_AUTH_STRING for its clients"
        yield Finding("prefect login", "warn", f"{url} needs none: all who reach it start programs here", set_it)
    if _status(f"{url}/health", Origin=f"http://{_FOREIGN_HOST}") == 200:
        yield Finding("prefect pages", "warn", f"{url} answers pages of other servers in a browser", _REMEDY)
    if url.startswith("http:") and _status(f"{url}/health", Host=_FOREIGN_HOST) == 200:
        yield Finding("prefect names", "warn", f"{url} answers to any name, as those of foreign pages", _REMEDY)
    for pool in _answer(f"{url}/work_pools/filter", login):
        if pool["type"] == "process" and (free := open_to(pool["base_job_template"])):
            name = pool["name"]
            text = f"a flow run in {name} can set {listed(free, 10)} of its process"
            yield Finding("prefect pool", "warn", text, f"python -m deployments.deploy --pool {name} closes it")


def _check_temporary() -> Finding:
    from prefect import get_client

    from flows import temporary_server, which_server

    if server := temporary_server.start():
        server.wait()
        with get_client(sync_client=True) as client:  # the client of flows
            client.hello().raise_for_status()
    return Finding("prefect", "ok", which_server.remark() or "a temporary server starts and answers")


def _login() -> dict[str, str]:
    """The header of the login that Prefect's clients in this environment use, if there is one."""
    if login := os.environ.get("PREFECT_API_AUTH_STRING"):
        return {"Authorization": basic(login)}
    key = os.environ.get("PREFECT_API_KEY")
    return {"Authorization": f"Bearer {key}"} if key else {}


def _status(url: str, **headers: str) -> int:
    """The status of the answer, asked for as flows do. Raises `OSError` if there is none, or this is no URL."""
    import httpx

    try:
        return httpx.get(url, headers=headers, timeout=_REQUEST_SECONDS, verify=_certificates()).status_code
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise OSError(str(error) or type(error).__name__) from error


def _answer(url: str, login: dict[str, str]) -> Any:
    import httpx

    return httpx.post(url, json={}, headers=login, timeout=_REQUEST_SECONDS, verify=_certificates()).json()


def _certificates() -> Any:
    """The certificates that Prefect's clients trust."""
    from prefect.settings import PREFECT_API_SSL_CERT_FILE

    from tasks.wiring.prefect_server import trusted

    return trusted(PREFECT_API_SSL_CERT_FILE.value())
