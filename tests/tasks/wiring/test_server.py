"""What Prefect's UI only shows never fails the work, nor holds it up."""

from __future__ import annotations

import logging
import shutil
import socket
import ssl
from pathlib import Path
from typing import Any

import certifi
import httpx
import pytest
from prefect.client.base import PrefectHttpxSyncClient as Client
from prefect.client.orchestration import get_client
from prefect.settings import (
    PREFECT_API_SSL_CERT_FILE,
    PREFECT_API_TLS_INSECURE_SKIP_VERIFY,
    PREFECT_API_URL,
    PREFECT_CLIENT_MAX_RETRIES,
    Settings,
    temporary_settings,
)

from common.settings import get_settings
from storage.datasets.materialise import Progress
from tasks.wiring.artifacts import ProgressBar
from tasks.wiring.prefect_server import make_requests_wait, share_certificates, shown


def test_an_error_of_what_is_shown_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    before = PREFECT_CLIENT_MAX_RETRIES.value()
    logging.getLogger("prefect").addHandler(caplog.handler)
    with shown("the table of results"):
        assert PREFECT_CLIENT_MAX_RETRIES.value() < before, "the work is not held up"
        raise httpx.ConnectError("no server")
    assert PREFECT_CLIENT_MAX_RETRIES.value() == before
    assert "the table of results is not shown in the Prefect UI: no server" in caplog.text


def test_progress_that_cannot_be_shown_is_left_alone_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def create(*_: object, **__: object) -> None:
        tries.append(1)
        raise httpx.ConnectError("no server")

    monkeypatch.setattr("tasks.wiring.artifacts.show_progress", create)
    bar = ProgressBar("prepare digits v1")
    for files in range(100):
        bar.show(Progress(files, 100, 0, 0))
    assert len(tries) == 1


def test_a_server_that_never_answers_is_given_up_within_the_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLEBENCH_PATIENCE", "2")
    get_settings.cache_clear()
    monkeypatch.setattr(Client, "send", Client.send)  # `make_requests_wait` replaces it
    make_requests_wait()
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/api"
        with (
            temporary_settings({PREFECT_API_URL: address}),
            get_client(sync_client=True, httpx_settings={"timeout": 600}) as client,
            pytest.raises(httpx.TimeoutException),
        ):
            client._client.get("/work_pools/")


def test_what_is_shown_is_not_paid_for_with_new_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    def validated(*_: object, **__: object) -> None:
        raise AssertionError("all of Prefect's settings are validated anew")

    monkeypatch.setattr(Settings, "__init__", validated)
    with shown("progress"):
        assert PREFECT_CLIENT_MAX_RETRIES.value() == 2


def test_clients_share_the_certificates_that_they_trust(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    read: list[str] = []
    original = ssl.create_default_context

    def create(*args: Any, cafile: str | None = None, **options: Any) -> ssl.SSLContext:
        read.append(str(cafile))
        return original(*args, cafile=cafile, **options)

    own = tmp_path / "own.pem"
    shutil.copyfile(certifi.where(), own)
    share_certificates()
    share_certificates()
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:1/api", PREFECT_API_SSL_CERT_FILE: str(own)}):
        monkeypatch.setattr(ssl, "create_default_context", create)
        clients: list[Any] = [get_client(sync_client=True), get_client(sync_client=True), get_client()]
    assert read == [str(own)], "the file that Prefect's settings name, once"
    pools = [each._client._transport._pool for each in clients]
    assert len({id(each._ssl_context) for each in pools}) == 1
    assert pools[0]._ssl_context.verify_mode is ssl.CERT_REQUIRED


def test_a_client_that_need_not_verify_does_not() -> None:
    share_certificates()
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:1/api", PREFECT_API_TLS_INSECURE_SKIP_VERIFY: True}):
        client: Any = get_client(sync_client=True)
    assert client._client._transport._pool._ssl_context.verify_mode is ssl.CERT_NONE
