"""A server that accepts connections and never answers: requests end, also those that upload."""

from __future__ import annotations

import contextlib
import pickle
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fsspec.config import conf
from s3fs import S3FileSystem

import common.patience
from common.causes import cause_of
from storage import bounded, remote
from storage.store import Store
from storage.unanswered import Unanswered
from storage.writers import StoreError
from tasks.wiring import prefect_tasks


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(100)
        yield listening


@pytest.fixture
def store(server: socket.socket, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store on a server that is silent, with clients of little patience."""
    impatient = {**remote.QUICK_CLIENT, "retries": {"max_attempts": 0}, "connect_timeout": 1, "read_timeout": 1}
    monkeypatch.setattr(remote, "RETRYING_CLIENT", impatient)
    monkeypatch.setattr(remote, "QUICK_CLIENT", impatient)
    monkeypatch.setattr(S3FileSystem, "retries", 1)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    yield Store("s3://bucket/silent")
    S3FileSystem.clear_instance_cache()


@pytest.fixture
def consenting(store: Store, server: socket.socket) -> Iterator[Store]:
    """The same store, whose server tells the next client to send its content, and does not take it."""

    def consent() -> None:
        with contextlib.suppress(OSError):  # no client has come, or it has left
            connection, _ = server.accept()
            taken.append(connection)
            while (heard := connection.recv(1 << 16)) and b"\r\n\r\n" not in heard:
                pass
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")

    taken: list[socket.socket] = []
    thread = threading.Thread(target=consent)
    thread.start()
    yield store
    server.shutdown(socket.SHUT_RDWR)
    thread.join()
    for connection in taken:
        connection.close()


@pytest.mark.parametrize(
    "request_",
    [
        lambda fs: fs.cat_file("bucket/silent/a"),
        lambda fs: fs.pipe_file("bucket/silent/a", b"small"),
        lambda fs: fs.ls("bucket/silent"),
    ],
    ids=["reading", "writing", "listing"],
)
def test_a_request_ends(store: Store, request_: Callable[[Any], Any]) -> None:
    with pytest.raises(Unanswered):
        request_(store.top.fs)


def test_a_request_ends_whose_content_is_not_taken(consenting: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MIN_BYTES_PER_SECOND", 20_000_000)
    with pytest.raises(Unanswered):  # the system takes a few megabytes
        consenting.top.fs.pipe_file("bucket/silent/a", bytes(20_000_000))


def test_a_store_that_never_answers_is_named(store: Store) -> None:
    with pytest.raises(StoreError, match=r"cannot be written: Read timeout on endpoint.*is the server up"):
        store.require_usable(0)


def connections(server: socket.socket) -> int:
    """How many have come."""
    server.setblocking(False)
    for number in range(100):
        try:
            server.accept()[0].close()
        except BlockingIOError:
            return number
    raise AssertionError("too many")


def test_retries_of_what_is_not_answered_do_not_multiply(
    store: Store, server: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(S3FileSystem, "retries", 5)  # as usual
    with pytest.raises(Unanswered) as caught:
        store.top.fs.cat_file("bucket/silent/a")
    assert connections(server) == 1, "botocore's tries, of which this client has one"
    sent = pickle.loads(pickle.dumps(caught.value))
    assert (cause_of(sent).kind, str(sent)) == ("store", str(caught.value))


@pytest.mark.parametrize("patience", [8, 60, 119, 120, 3600])
def test_a_client_gives_up_within_the_patience(patience: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common.patience, "_seconds", patience)
    monkeypatch.setitem(conf, "s3", {})
    monkeypatch.setitem(conf, "s3a", {})
    remote.set_fsspec_defaults()
    config = conf["s3"]["config_kwargs"]
    tries = 1 + config["retries"]["max_attempts"]
    seconds = tries * (config["connect_timeout"] + config["read_timeout"])
    assert seconds <= max(30, prefect_tasks._MAX_UNANSWERED_SECONDS - 8 * 20)  # with the pauses between the tries
    assert seconds <= 30 or patience >= 120
