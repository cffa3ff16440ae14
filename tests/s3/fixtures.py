"""`s3`: a bucket of its own on a server that can be taken away and brought back; each test runs on every server.

`faulty_s3`: a bucket behind a proxy that makes faults, see `tests/s3/faults.py`; on the real server if it is installed.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import socket
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import services
from tests.s3.faults import FaultProxy, Faults
from tests.s3.radosgw import S3Server, missing
from tests.waiting import listening, until


class Moto:
    """moto's server in this process: its objects outlive the listening socket."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._server: Any = None
        self.environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def start_gateway(self) -> None:
        from moto.server import ThreadedMotoServer

        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=self.port, verbose=False)
        self._server.start()

    def stop_gateway(self) -> None:
        self._server.stop()
        self._server = None


@functools.cache
def _read_models_once() -> None:
    """Each session of botocore would find and parse the model of S3 and all endpoints; tests in buckets have many."""
    from botocore import loaders, session

    session.create_loader = functools.cache(loaders.create_loader)  # a loader keeps what it has found and parsed


class Bucket:
    """A fresh bucket. `url` is the root for a store, `environment` what another process needs to reach it."""

    def __init__(self, server: Moto | S3Server) -> None:
        _read_models_once()
        self.server, self.name = server, f"test-{uuid.uuid4().hex[:12]}"
        self.url = f"s3://{self.name}/some/prefix"
        self.environment = server.environment
        self.client = self._client()
        self.client.create_bucket(Bucket=self.name)

    def _client(self) -> Any:
        import boto3

        names = ("endpoint_url", "aws_access_key_id", "aws_secret_access_key", "region_name")
        return boto3.client("s3", **dict(zip(names, self.environment.values(), strict=True)))

    def names(self) -> list[str]:
        """Every object, sorted, without the prefix."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name)
        return sorted(each["Key"].removeprefix("some/prefix/") for page in pages for each in page.get("Contents", ()))

    def stop(self) -> None:
        """The server goes away."""
        self.server.stop_gateway()

    def start(self) -> None:
        """It comes back with everything it had."""
        self.server.start_gateway()
        until(lambda: listening(self.server.port), 60, what="the server's return", pause=0.1)


class FaultyBucket(Bucket):
    """A bucket whose `url` and `environment` lead through a proxy; its own `client` and `names` go past it."""

    def __init__(self, server: Moto | S3Server, proxy: FaultProxy) -> None:
        super().__init__(server)
        self.proxy = proxy
        self.environment = {**server.environment, "AWS_ENDPOINT_URL": proxy.url}

    @property
    def faults(self) -> Faults:
        return self.proxy.faults

    def stop(self) -> None:
        self.proxy.stop()

    def start(self) -> None:
        self.proxy.start()


@pytest.fixture(scope="session")
def _moto() -> Iterator[Moto]:
    server = Moto()
    server.start_gateway()
    yield server
    server.stop_gateway()


@pytest.fixture(scope="session")
def _radosgw() -> Iterator[S3Server]:
    assert missing() is None
    folder = Path(tempfile.mkdtemp(prefix="mlebench-s3-"))
    try:
        with S3Server(folder) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def _server(request: pytest.FixtureRequest) -> S3Server | Moto:
    """Ceph's radosgw; moto where it is not installed and no services are required."""
    reason = missing()
    if services.REQUIRED:
        services.skip_without(reason)
    server: S3Server | Moto = request.getfixturevalue("_moto" if reason else "_radosgw")
    return server


@pytest.fixture
def s3(_server: S3Server | Moto, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A bucket, with the environment that leads there."""
    bucket = Bucket(_server)
    with clients_of(bucket, monkeypatch):
        yield bucket


@pytest.fixture
def faulty_s3(_server: S3Server | Moto, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyBucket]:
    """A bucket behind a proxy with rules for faults, with the environment that leads there."""
    with FaultProxy(_server.port) as proxy:
        bucket = FaultyBucket(_server, proxy)
        with clients_of(bucket, monkeypatch):
            yield bucket


@contextlib.contextmanager
def clients_of(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process' clients of S3 lead to the bucket in the block."""
    for name, value in bucket.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("NO_PROXY", ",".join(filter(None, ["127.0.0.1", os.environ.get("NO_PROXY")])))
    import fsspec.config
    from s3fs import S3FileSystem

    S3FileSystem.clear_instance_cache()  # clients of an earlier test know another server's credentials
    yield
    S3FileSystem.clear_instance_cache()
    for protocol in ("s3", "s3a"):  # the endpoint in fsspec's defaults is gone
        fsspec.config.conf.pop(protocol, None)
