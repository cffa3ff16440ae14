"""Kaggle, stores and language models are reached through the proxies of the environment, those of SOCKS included."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from common.environment import settle
from storage.sources.kaggle import access
from tests.kaggle_server import KaggleServer
from tests.proxies import proxy
from tests.s3.fixtures import Moto

ROOT = Path(__file__).parents[2]
ELSEWHERE = "127.0.0.2"
"""An address that the proxies take for 127.0.0.1."""


@pytest.fixture(params=["http", "socks5", "socks5h"])
def asked(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """The places that a proxy in ALL_PROXY was asked for."""
    before = dict(os.environ)
    with proxy(request.param) as (url, places):
        os.environ["ALL_PROXY"] = url
        settle()
        yield places
    os.environ.clear()
    os.environ.update(before)


def test_kaggle_is(kaggle: KaggleServer, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from kagglesdk import kaggle_env

    kaggle.archives["leaf-classification"] = b"x"
    url = kaggle.url.replace("localhost", ELSEWHERE)
    monkeypatch.setitem(kaggle_env._env_to_endpoint, kaggle_env.KaggleEnv.TEST, url)
    (answer,) = access(["leaf-classification"])
    assert answer.state == "ok"
    assert set(asked) == {url.removeprefix("http://")}


def test_a_store_is(asked: list[str]) -> None:
    server = Moto()
    server.start_gateway()
    endpoint = server.environment["AWS_ENDPOINT_URL"].replace("127.0.0.1", ELSEWHERE)
    command = [sys.executable, "-m", "flows.cli", "ls", "--store", "s3://no-such-bucket/prefix"]
    env = {**os.environ, **server.environment, "AWS_ENDPOINT_URL": endpoint}
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    server.stop_gateway()
    assert "there is no store at s3://no-such-bucket/prefix" in done.stderr
    assert set(asked) == {endpoint.removeprefix("http://")}


def test_a_language_model_is(kaggle: KaggleServer, asked: list[str]) -> None:
    url = kaggle.url.replace("localhost", ELSEWHERE)
    with httpx.Client() as client:
        assert client.get(url).status_code
    assert asked == [url.removeprefix("http://")]
