"""One table says what passes, whose fault it is, and what to do; every error of our stack has its row."""

from __future__ import annotations

import errno
import http.client
import pickle
import socket
from typing import Any

import pytest

from common.causes import CAUSES, cause_of, explain, retrying
from common.errors import UserError
from competitions.errors import DownloadError
from sandbox.docker.engine import EngineUnreachable
from storage.datasets.cluster import ClusterError
from storage.sources.kaggle.errors import RulesNotAccepted, Unreachable
from storage.writers import StoreError


def answered(code: str, status: int, operation: str = "GetObject") -> Exception:
    """An error as botocore makes it, and as s3fs raises it."""
    from botocore.exceptions import ClientError
    from s3fs.errors import translate_boto_error

    response: Any = {"Error": {"Code": code, "Message": "x"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    error: Exception = translate_boto_error(ClientError(response, operation))
    return error


def _foreign() -> dict[str, tuple[BaseException, str]]:
    import aiohttp
    import botocore.exceptions
    import distributed
    import docker.errors
    import httpx
    import requests
    from distributed.comm.core import CommClosedError

    worker: Any = None
    request = requests.Response()
    request.status_code = 502
    return {
        "a short answer": (aiohttp.ClientPayloadError(), "store"),
        "a lost connection": (aiohttp.ServerDisconnectedError(), "store"),
        "no server": (botocore.exceptions.EndpointConnectionError(endpoint_url="x"), "store"),
        "a server that is gone": (botocore.exceptions.ConnectionClosedError(endpoint_url="x"), "store"),
        "a read that hangs": (botocore.exceptions.ReadTimeoutError(endpoint_url="x"), "store"),
        "a short body": (http.client.IncompleteRead(b"", 3), "network"),
        "no credentials": (botocore.exceptions.NoCredentialsError(), "refused"),
        "502": (requests.HTTPError(response=request), "network"),
        "requests": (requests.ConnectionError(), "network"),
        "httpx": (httpx.ReadError("x"), "prefect"),
        "Dask": (CommClosedError("x"), "scheduler"),
        "a worker without memory": (distributed.KilledWorker("x", worker, 3), "memory"),
        "Docker": (docker.errors.DockerException("x"), "engine"),
        "a name server": (socket.gaierror(socket.EAI_AGAIN, "x"), "dns"),
        "no such name": (socket.gaierror(socket.EAI_NONAME, "x"), "dns"),
        "SlowDown": (answered("SlowDown", 503), "store"),
        "InternalError": (answered("InternalError", 500), "store"),
        "a code that nobody knows": (answered("Strange", 503), "store"),
        "a HEAD without a body": (answered("503", 503), "store"),
        "a full bucket": (answered("QuotaExceeded", 403), "disk full"),
        "AccessDenied": (answered("AccessDenied", 403), "refused"),
        "NoSuchBucket": (answered("NoSuchBucket", 404), "missing"),
        "InvalidArgument": (answered("InvalidArgument", 400), "user input"),
        "EINVAL": (OSError(errno.EINVAL, "x"), "user input"),
        "ENOSPC": (OSError(errno.ENOSPC, "x"), "disk full"),
        "EACCES": (PermissionError(errno.EACCES, "x"), "refused"),
        "ESTALE": (OSError(errno.ESTALE, "x"), "store"),
        "EIO": (OSError(errno.EIO, "x"), "store"),
        "ECONNRESET": (ConnectionResetError(errno.ECONNRESET, "x"), "network"),
        "a time-out": (TimeoutError(), "network"),
        "Kaggle is away": (Unreachable("x"), "network"),
        "Kaggle's rules": (RulesNotAccepted("x"), "refused"),
        "no scheduler": (ClusterError("x"), "scheduler"),
        "no engine": (EngineUnreachable("x"), "engine"),
        "a damaged archive": (DownloadError("x"), "damaged data"),
        "a wrong option": (UserError("x"), "user input"),
        "a bug": (KeyError("x"), "bug"),
        "another bug": (RuntimeError("x"), "bug"),
    }


@pytest.mark.parametrize("name", _foreign())
def test_the_kind_of_an_error(name: str) -> None:
    error, kind = _foreign()[name]
    assert cause_of(error).kind == kind
    assert cause_of(error).passes == (kind in ("network", "dns", "store", "prefect", "scheduler", "engine"))


def test_an_error_around_another_has_its_kind_also_in_another_process() -> None:
    around = StoreError("cannot be written")
    around.__cause__ = ConnectionResetError()
    assert cause_of(around).kind == "network"
    sent = pickle.loads(pickle.dumps(StoreError("cannot be written").of_kind("store")))
    assert cause_of(sent).passes
    assert not cause_of(StoreError("cannot be written")).passes


def test_the_table_is_frozen() -> None:
    with pytest.raises(TypeError):
        CAUSES["bug"] = CAUSES["store"]  # type: ignore[index]
    with pytest.raises(AttributeError):
        CAUSES["bug"].passes = True  # type: ignore[misc]


def test_an_explanation_is_one_line_with_the_remedy() -> None:
    assert explain(answered("SlowDown", 503)).startswith("x; is the server up, and AWS_ENDPOINT_URL right?")
    assert explain(OSError(errno.ENOSPC, "No space left", "/d/f")).startswith("No space left: /d/f; ")
    assert explain(UserError("do this\nor that")) == "do this"
    assert explain(KeyError("x")) == "KeyError: 'x'"


class TestPatience:
    def test_what_passes_is_tried_again_and_said(self) -> None:
        errors, said, pauses = [ConnectionResetError("reset"), TimeoutError("late")], list[str](), list[float]()

        def work() -> str:
            if errors:
                raise errors.pop(0)
            return "done"

        assert retrying(work, on_wait=said.append, pause=pauses.append) == "done"
        assert said[0] == "for the network (reset); giving up in 60 min"
        assert len(pauses) == 2

    def test_what_does_not_pass_is_raised_at_once(self) -> None:
        tried = []

        def work() -> None:
            tried.append(1)
            raise DownloadError("damaged")

        with pytest.raises(DownloadError):
            retrying(work)
        assert len(tried) == 1

    def test_it_ends(self) -> None:
        tried = []

        def work() -> None:
            tried.append(1)
            raise ConnectionResetError

        with pytest.raises(ConnectionResetError):
            retrying(work, seconds=0)
        assert len(tried) == 1
