"""The proxy makes the faults that its rules name, to the requests that they match, and no others."""

from __future__ import annotations

import threading
from http.client import HTTPConnection
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ConnectionClosedError, EndpointConnectionError
from botocore.session import get_session

from tests.s3.fixtures import FaultyBucket
from tests.waiting import until


@pytest.fixture
def client(faulty_s3: FaultyBucket) -> Any:
    """A client that goes through the proxy and tries once."""
    config = Config(retries={"max_attempts": 0})
    names = ("endpoint_url", "aws_access_key_id", "aws_secret_access_key", "region_name")
    return boto3.client("s3", config=config, **dict(zip(names, faulty_s3.environment.values(), strict=True)))


def _put(client: Any, bucket: FaultyBucket, name: str, body: bytes = b"content") -> None:
    client.put_object(Bucket=bucket.name, Key=f"some/prefix/{name}", Body=body)


def _get(client: Any, bucket: FaultyBucket, name: str) -> bytes:
    body: bytes = client.get_object(Bucket=bucket.name, Key=f"some/prefix/{name}")["Body"].read()
    return body


def test_without_rules_everything_passes_and_is_counted(faulty_s3: FaultyBucket, client: Any) -> None:
    big = bytes(range(256)) * (12 << 12)  # 12 MiB
    _put(client, faulty_s3, "a b", big)
    assert _get(client, faulty_s3, "a b") == big
    assert client.list_objects_v2(Bucket=faulty_s3.name, Prefix="some/")["KeyCount"] == 1
    client.head_object(Bucket=faulty_s3.name, Key="some/prefix/a b")
    client.delete_object(Bucket=faulty_s3.name, Key="some/prefix/a b")
    counted = {method: faulty_s3.proxy.count(method) for method in ("PUT", "GET", "LIST", "HEAD", "DELETE")}
    assert counted == {"PUT": 1, "GET": 1, "LIST": 1, "HEAD": 1, "DELETE": 1}
    assert faulty_s3.proxy.count("GET", "prefix/a b") == 1


def test_a_rule_takes_the_nth_matching_request(faulty_s3: FaultyBucket, client: Any) -> None:
    _put(client, faulty_s3, "a")
    rule = faulty_s3.faults.status(503, "GET", "prefix/a$", nth=2, times=1)
    assert _get(client, faulty_s3, "a") == b"content"
    with pytest.raises(ClientError, match="SlowDown"):
        _get(client, faulty_s3, "a")
    assert _get(client, faulty_s3, "a") == b"content"
    assert (rule.seen, rule.hits) == (3, 1)


def test_a_reset_request_never_reached_the_server(faulty_s3: FaultyBucket, client: Any) -> None:
    faulty_s3.faults.reset("PUT")
    with pytest.raises(ConnectionClosedError):
        _put(client, faulty_s3, "a")
    assert faulty_s3.names() == []


def test_an_answer_is_lost_after_the_server_has_done_its_work(faulty_s3: FaultyBucket, client: Any) -> None:
    faulty_s3.faults.lose_answer("PUT")
    with pytest.raises(ConnectionClosedError):
        _put(client, faulty_s3, "a")
    assert faulty_s3.names() == ["a"]


def test_an_answer_is_cut_short(faulty_s3: FaultyBucket, client: Any) -> None:
    _put(client, faulty_s3, "a", bytes(1 << 20))
    faulty_s3.faults.truncate(1000, "GET")
    with pytest.raises((BotoCoreError, OSError), match=r"1000|[Bb]roken"):
        _get(client, faulty_s3, "a")
    assert len(_get(client, faulty_s3, "a")) == 1 << 20


def test_a_request_hangs_until_it_is_released(faulty_s3: FaultyBucket, client: Any) -> None:
    rule = faulty_s3.faults.hang("PUT")
    writer = threading.Thread(target=_put, args=(client, faulty_s3, "a"))
    writer.start()
    until(lambda: rule.hits, what="the request")
    assert faulty_s3.names() == []
    rule.release()
    writer.join()
    assert faulty_s3.names() == ["a"]


def test_a_repeated_request_reaches_the_server_twice(faulty_s3: FaultyBucket, client: Any) -> None:
    faulty_s3.faults.repeat("PUT")
    with pytest.raises(ClientError, match="PreconditionFailed"):
        client.put_object(Bucket=faulty_s3.name, Key="once", Body=b"content", IfNoneMatch="*")
    assert faulty_s3.client.get_object(Bucket=faulty_s3.name, Key="once")["Body"].read() == b"content"


def test_a_delay_is_counted_and_leaves_other_rules_in_force(faulty_s3: FaultyBucket, client: Any) -> None:
    delay = faulty_s3.faults.delay(0.001)
    faulty_s3.faults.status(500, "PUT")
    with pytest.raises(ClientError, match="InternalError"):
        _put(client, faulty_s3, "a")
    _put(client, faulty_s3, "a")
    assert delay.hits == 2


def test_the_server_goes_away_and_comes_back(faulty_s3: FaultyBucket, client: Any) -> None:
    _put(client, faulty_s3, "a")
    faulty_s3.stop()
    with pytest.raises((EndpointConnectionError, ConnectionClosedError)):
        _get(client, faulty_s3, "a")
    faulty_s3.start()
    assert _get(client, faulty_s3, "a") == b"content"


def test_a_request_is_not_served_by_a_thread_that_wakes_late(
    faulty_s3: FaultyBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, asked = faulty_s3.proxy, threading.Event()
    calls = iter(range(2))
    serve = proxy._pass_on

    def late(*arguments: Any) -> bool:
        if next(calls) == 1:  # this thread sees neither that the proxy was stopped nor the request that came after it
            assert asked.wait(60)
        return serve(*arguments)

    monkeypatch.setattr(proxy, "_pass_on", late)
    client = HTTPConnection("127.0.0.1", proxy.port, timeout=60)
    client.request("GET", "/")
    client.getresponse().read()
    faulty_s3.stop()
    client.request("GET", "/")
    asked.set()
    with pytest.raises(ConnectionResetError):
        client.getresponse()
    assert proxy.count() == 1
    client.close()


def test_sessions_of_tests_share_the_models_of_botocore(faulty_s3: FaultyBucket) -> None:
    one, other = (get_session().get_component("data_loader") for _ in range(2))
    assert one.load_data("endpoints") is other.load_data("endpoints")


def test_a_store_works_through_it(faulty_s3: FaultyBucket) -> None:
    from storage.store import Store

    store = Store(faulty_s3.url)
    store.write(store.url("raw", "x.bin"), bytes(7 << 20))
    assert store.read(store.url("raw", "x.bin")) == bytes(7 << 20)
    assert faulty_s3.proxy.count("PUT") >= 1
