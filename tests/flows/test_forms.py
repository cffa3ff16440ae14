"""A worker runs each deployed flow in a new process, which has not applied its settings yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from common.settings import get_settings
from competitions import registry
from flows.cli import main
from flows.forms import chosen_ids
from storage import remote
from tasks.wiring.context import open_store


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(remote, "_options", remote.S3Options())
    get_settings.cache_clear()
    yield
    get_settings.cache_clear()


def test_competitions_of_the_settings_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["new", "my-comp", "--into", str(tmp_path)]) == 0
    monkeypatch.setenv("MLEBENCH_COMPETITIONS", str(tmp_path))
    get_settings.cache_clear()
    registry.extend(())
    assert chosen_ids("low", ["my-comp"]) == ["my-comp"]


def test_the_store_is_opened_as_the_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLEBENCH_S3_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("MLEBENCH_STORE", "s3://bucket/root")
    assert open_store(None).root == "s3://bucket/root"
    assert remote._options.endpoint_url == "http://127.0.0.1:1"
