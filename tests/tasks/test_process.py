"""What is global in a process is set from the settings, as often as it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from common.settings import get_settings
from competitions import registry
from flows.cli import main
from storage import remote
from tasks.checksum import verify_checksums
from tasks.download import download_archive
from tasks.split import split_dataset
from tasks.wiring.context import local_cache, open_store
from tasks.wiring.process import apply_settings


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(remote, "_options", remote.S3Options())
    get_settings.cache_clear()
    yield
    get_settings.cache_clear()


def test_s3_and_competitions_are_as_the_settings_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLEBENCH_S3_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("MLEBENCH_S3_SECRET_ACCESS_KEY", "hidden")
    monkeypatch.setenv("MLEBENCH_COMPETITIONS", str(tmp_path / "own"))
    (tmp_path / "own" / "mine").mkdir(parents=True)
    (tmp_path / "own" / "mine" / "competition.yaml").touch()
    for _ in range(2):
        apply_settings()
        assert remote._options == remote.S3Options("http://127.0.0.1:1", None, "hidden")
        assert registry.folders()["mine"] == tmp_path / "own" / "mine"
    monkeypatch.delenv("MLEBENCH_COMPETITIONS")
    get_settings.cache_clear()
    apply_settings()
    assert "mine" not in registry.folders()


def test_the_store_and_its_cache_are_those_of_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLEBENCH_STORE", str(tmp_path / "a"))
    monkeypatch.setenv("MLEBENCH_SCRATCH", str(tmp_path / "scratch"))
    monkeypatch.setenv("MLEBENCH_CACHE_LIMIT", "5GB")
    assert open_store().root == (tmp_path / "a").as_uri()
    assert open_store(str(tmp_path / "b")).root == (tmp_path / "b").as_uri()
    assert (local_cache().folder, local_cache().limit) == (tmp_path / "scratch" / "cache", 5 * 10**9)


def test_steps_apply_the_settings_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["new", "my-comp", "--into", str(tmp_path / "own")]) == 0
    monkeypatch.setenv("MLEBENCH_COMPETITIONS", str(tmp_path / "own"))
    get_settings.cache_clear()
    store = (tmp_path / "store").as_uri()
    registry.extend(())
    archive = download_archive("my-comp", store)
    registry.extend(())
    key = split_dataset("my-comp", store, "v1", archive)
    registry.extend(())
    assert verify_checksums("my-comp", store, "v1", key) == 0
