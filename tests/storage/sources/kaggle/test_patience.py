"""Requests to a Kaggle that never answers end within the patience, in the time of a made-up clock."""

from __future__ import annotations

import pytest
import requests

from common.causes import cause_of
from storage.sources.kaggle import retry
from storage.sources.kaggle.errors import Unreachable, describe


@pytest.mark.parametrize(("patience", "tries", "passes"), [(8, 2, False), (130, 4, False), (3600, 8, True)])
def test_a_server_that_never_answers(
    patience: float, tries: int, passes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, made = [0.0], []
    monkeypatch.setattr(retry.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(retry, "sleep", lambda seconds: now.append(now.pop() + seconds))
    monkeypatch.setattr(retry.random, "uniform", lambda _low, high: high / 2)

    def ask() -> None:
        made.append(1)
        now.append(now.pop() + 60)  # the time limit of a connection
        raise requests.ReadTimeout

    with pytest.raises(Unreachable, match=f"gave up after {tries} tries") as caught:
        retry.retrying("leaf", "page", ask, policy=retry.Policy(patience=patience))
    assert len(made) == tries
    assert cause_of(caught.value).passes is passes, "the task does not wait once more"


def test_what_arrives_begins_the_time_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(retry.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(retry, "sleep", lambda _: None)
    retries = retry.Retries("leaf", "page", lambda _: None, retry.Policy(patience=8))
    for _ in range(20):
        retries.failed(requests.ReadTimeout())
        retries.progress()
        now[0] += 60


def test_a_refusing_proxy_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://me:secret@127.0.0.1:9")
    with pytest.raises(requests.exceptions.ProxyError) as refused:
        requests.get("https://api.kaggle.com", timeout=10)
    assert describe(refused.value) == "api.kaggle.com: Connection refused, through the proxy 127.0.0.1:9 of HTTPS_PROXY"
