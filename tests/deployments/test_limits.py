"""For how long Prefect's server may be away, with the limits as they are configured, in the time of a made-up clock.

`test_server_away.py` takes a real server away for a minute. Whether ten minutes or an hour are endured is a matter of
limits, which are measured here: what waits does so on a clock that the test turns.
"""

from __future__ import annotations

import functools
import time
from pathlib import Path

import anyio
import httpx
import pytest
import yaml
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.utilities.services import critical_service_loop

from common import causes
from common.settings import Settings
from deployments import up
from tasks.wiring import prefect_server

ROOT = Path(__file__).parents[2]
MINUTE = 60.0


class Clock:
    """A clock that only moves when somebody waits."""

    def __init__(self) -> None:
        self.now = 1000.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    async def asleep(self, seconds: float) -> None:
        self.now += seconds


def query_seconds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, float]:
    """The interval of a worker's queries under `make up` and under Compose."""
    given: dict[str, str] = {}
    installation = up.Installation(tmp_path)
    installation.login.write_text("user:password\n")
    monkeypatch.setattr(up.Installation, "dask_address", lambda _: "tcp://127.0.0.1:1")
    monkeypatch.setattr(
        installation.processes, "start", lambda _name, _command, env, *_: given.update(env), raising=True
    )
    installation.start_worker()
    text = (ROOT / "deployments" / "compose.yaml").read_text()
    (line,) = (line for line in text.splitlines() if "PREFECT_WORKER_QUERY_SECONDS" in line)
    return {
        "make up": float(given["PREFECT_WORKER_QUERY_SECONDS"]),
        "Compose": float(yaml.safe_load(line.strip())["PREFECT_WORKER_QUERY_SECONDS"]),
    }


def test_a_worker_endures_ten_minutes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It ends after twelve failed queries, whose pauses grow; at worst each is shortened by its jitter of 30 %."""
    for where, interval in query_seconds(monkeypatch, tmp_path).items():
        clock = Clock()
        monkeypatch.setattr(anyio, "sleep", clock.asleep)

        async def query() -> None:
            raise httpx.ConnectError("no server")

        loop = functools.partial(
            critical_service_loop, query, interval=0.7 * interval, backoff=4, printer=lambda *_: None
        )
        with pytest.raises(RuntimeError, match="threshold"):
            anyio.run(loop)
        assert clock.now - 1000 >= 10 * MINUTE, where
        monkeypatch.undo()


def test_a_flow_endures_an_hour_unless_the_settings_say_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings.model_fields["patience"].default >= 60 * MINUTE
    for away, ends_well in ((59 * MINUTE, True), (61 * MINUTE, False)):
        clock = Clock()
        with monkeypatch.context() as patch:
            patch.setattr(time, "monotonic", lambda clock=clock: clock.now)
            patch.setattr(prefect_server, "retrying", functools.partial(causes.retrying, pause=clock.sleep))
            back = clock.now + away
            with _served_from(clock, back):
                if ends_well:
                    assert _ask() == 200
                else:
                    with pytest.raises(httpx.ConnectError):
                        _ask()


def _ask() -> int:
    """The first request of a client, for which Prefect itself has no retries."""
    prefect_server.wait_for_server()
    with get_client(sync_client=True) as client:
        return client._client.get("/health").status_code


class _served_from:  # noqa: N801  # reads as a function
    """A Prefect server that refuses connections until the clock says `back`."""

    def __init__(self, clock: Clock, back: float) -> None:
        self.clock, self.back = clock, back

    def __enter__(self) -> None:
        def answer(request: httpx.Request) -> httpx.Response:
            if self.clock.now < self.back:
                raise httpx.ConnectError("refused", request=request)
            return httpx.Response(200, request=request, json=True)

        self.settings = temporary_settings({PREFECT_API_URL: "http://127.0.0.1:1/api"})
        self.settings.__enter__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(httpx.Client, "send", lambda _self, request, *_args, **_options: answer(request))

    def __exit__(self, *_: object) -> None:
        self.patch.undo()
        self.settings.__exit__(None, None, None)
