"""A server that accepts connections and never answers: requests end, also those that upload."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from s3fs import S3FileSystem

from storage import bounded, remote
from storage.store import Store
from storage.writers import StoreError


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store on a server that is silent, with clients of little patience."""
    impatient = {**remote._QUICK, "retries": {"max_attempts": 0}, "connect_timeout": 1, "read_timeout": 1}
    monkeypatch.setattr(remote, "_PATIENT", impatient)
    monkeypatch.setattr(remote, "_QUICK", impatient)
    monkeypatch.setattr(S3FileSystem, "retries", 1)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(100)
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        yield Store("s3://bucket/silent")
        S3FileSystem.clear_instance_cache()


@pytest.mark.parametrize(
    "request_",
    [
        lambda fs: fs.cat_file("bucket/silent/a"),
        lambda fs: fs.pipe_file("bucket/silent/a", b"small"),
        lambda fs: fs.pipe_file("bucket/silent/a", bytes(20_000_000)),
        lambda fs: fs.ls("bucket/silent"),
    ],
    ids=["reading", "writing", "writing more than the system takes", "listing"],
)
def test_a_request_ends(store: Store, request_: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "SLOWEST", 20_000_000)
    with pytest.raises(ReadTimeoutError):
        request_(store.top.fs)


def test_a_store_that_never_answers_is_named(store: Store) -> None:
    with pytest.raises(StoreError, match=r"cannot be written: Read timeout on endpoint.*is the server up"):
        store.require_usable(patience=0)
