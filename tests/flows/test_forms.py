"""A worker runs each deployed flow in a new process, which has not applied its settings yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from common.errors import UserError
from common.settings import get_settings
from competitions import registry
from flows.cli import main
from flows.forms import Data, chosen_ids, in_words_of_form
from flows.unattended import benchmark
from storage import remote
from tasks.wiring.context import open_store
from tests.agents import write_agent
from tests.stores import Store


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


def test_an_agent_that_is_not_trusted_is_refused_before_anything_is_prepared(store: Store, tmp_path: Path) -> None:
    agent = write_agent(tmp_path / "elsewhere" / "mine", "true")
    with pytest.raises(UserError) as refusal:
        benchmark(split="demo", agent=str(agent), data=Data(store=store.root))
    assert "“Backend” docker" in str(refusal.value)
    assert f"MLEBENCH_AGENT_DIRS={agent}" in str(refusal.value)
    assert "settings are those of the worker" in str(refusal.value)
    assert "--" not in str(refusal.value)
    assert not store.glob("raw/**")
    assert not store.glob("prepared/**")


def test_remedies_that_a_form_does_not_have_are_left_out() -> None:
    text = "the archive's MD5 is wrong; download it again, or pass --skip-verification to use it anyway"
    assert in_words_of_form(text, Data).endswith("or pass “Skip verification” to use it anyway")
    assert in_words_of_form("exists: choose another --run-group, or insist with --overwrite", Data) == (
        "exists: choose another “run_group”"
    )
    assert in_words_of_form("it cannot: use --runtime runsc", Data) == "it cannot"
