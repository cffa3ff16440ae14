"""Fixtures of tests that talk to Kaggle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from common.settings import get_settings
from tests.kaggle_server.server import KaggleServer
from tests.prepared import PreparedCompetitions


@pytest.fixture
def kaggle(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KaggleServer]:
    """The server, with its token in the environment; the real client talks to it.

    The client's TEST environment is port 7777; its table of addresses is pointed at a free port instead, so that tests
    can run side by side.
    """
    from kagglesdk import kaggle_env

    server = KaggleServer()
    monkeypatch.setitem(kaggle_env._env_to_endpoint, kaggle_env.KaggleEnv.TEST, server.url)
    monkeypatch.setenv("KAGGLE_API_ENVIRONMENT", "TEST")
    monkeypatch.setenv("KAGGLE_API_TOKEN", server.token)
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("nobody")))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    get_settings.cache_clear()
    yield server
    server.close()
    get_settings.cache_clear()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Delays before new attempts, in seconds; nobody waits for them."""
    delays: list[float] = []
    monkeypatch.setattr("storage.sources.kaggle.retry.sleep", delays.append)
    return delays


@pytest.fixture
def packs(prepared: PreparedCompetitions) -> Path:
    """The parity miniatures, a folder each with raw.zip and expected.json."""
    return prepared.packs
