"""A command that can only fail for lack of credentials fails at once, once, with the remedy, and makes nothing."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from common.settings import get_settings
from flows.cli import main
from flows.unattended import benchmark, preparation
from tests.agents import write_agent
from tests.kaggle_server import KaggleServer
from tests.stores import Store

NO_LOGIN = ("KAGGLE_API_TOKEN", "KAGGLE_USERNAME", "KAGGLE_KEY", "KAGGLE_CONFIG_DIR", "XDG_CONFIG_HOME")


@pytest.fixture(autouse=True)
def _nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in NO_LOGIN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    get_settings.cache_clear()


def refused(capfd: pytest.CaptureFixture[str], store: Store, *arguments: str) -> str:
    """The one line with which a command fails, before anything is written to the store but its version."""
    capfd.readouterr()
    assert main([*arguments, "--store", store.root]) == 1
    out, err = capfd.readouterr()
    notices = [line for line in out.splitlines() if not line.startswith("not everybody can download")]
    assert (notices, err.count("\n")) == ([], 1), out + err
    assert [path.name for path in store.local().rglob("*") if path.is_file()] in ([], ["store.json"])
    return err


@pytest.mark.parametrize("command", [("prepare", "--lite"), ("run", "--lite", "--agent", "dummy")])
def test_without_kaggles_credentials(command: tuple[str, ...], store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    said = refused(capfd, store, *command)
    assert said.startswith("mlebench: 20 competitions would have to be downloaded from Kaggle"), said
    for remedy in ("KAGGLE_API_TOKEN", "kaggle.json", "--raw-dir"):
        assert remedy in said


def test_a_dry_run_says_so_below_its_plan(store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--lite", "--agent", "dummy", "--run-group", "g", "--dry-run", "--store", store.root]) == 1
    lines = capfd.readouterr().out.splitlines()
    assert "Run group g: 22 runs to do" in lines
    assert lines[-1].startswith("Refused: 20 competitions would have to be downloaded from Kaggle"), lines


def test_what_needs_no_download_is_prepared_nevertheless(store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["prepare", "-c", "diabetes", "-c", "leaf-classification", "--store", store.root]) == 1
    out, err = capfd.readouterr()
    assert "done    diabetes" in out
    assert "failed  leaf-classification: leaf-classification would have to be downloaded from Kaggle" in out
    assert "leaf-classification: download" not in err, "it is not tried"
    # The next command has nothing left to do that needs no credentials.
    assert main(["prepare", "-c", "diabetes", "-c", "leaf-classification", "--store", store.root]) == 1
    assert capfd.readouterr().err.startswith("mlebench: leaf-classification would have to be downloaded")


@pytest.mark.parametrize("flow", [preparation, benchmark])
def test_deployed_flows_fail_at_once(flow: object, store: Store) -> None:
    from common.errors import UserError
    from flows.forms import Data

    where = {"data": Data(store=store.root)} if flow is benchmark else {"store": store.root}
    with pytest.raises(UserError, match=r"^20 competitions would have to be downloaded"):
        flow("low", **where)  # type: ignore[operator]
    assert not list(store.local().glob("raw/*"))


def test_with_credentials_it_is_tried(kaggle: KaggleServer, store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    logging.getLogger("kagglesdk").setLevel(logging.CRITICAL)
    assert main(["prepare", "-c", "leaf-classification", "--store", store.root]) == 1
    assert "would have to be" not in capfd.readouterr().err


class TestAgents:
    """What their runs need of this machine."""

    RUN = ("run", "--split", "demo", "--seeds", "3", "--allow-untrusted", "--agent")

    def test_language_models_without_a_provider(self, store: Store, capfd: pytest.CaptureFixture[str]) -> None:
        said = refused(capfd, store, *self.RUN, "aide")
        assert "'aide' needs language models, and no provider is configured: set MLEBENCH_PROVIDERS__OPENAI__" in said

    def test_a_provider_without_its_key(
        self, store: Store, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MLEBENCH_PROVIDERS__OPENAI__BASE_URL", "https://api.openai.com/v1")
        get_settings.cache_clear()
        said = refused(capfd, store, *self.RUN, "aide@dev")
        assert said.endswith("wants an API key: set MLEBENCH_PROVIDERS__OPENAI__API_KEY\n")
        monkeypatch.setenv("MLEBENCH_PROVIDERS__OPENAI__API_KEY", "sk-1")
        get_settings.cache_clear()
        assert main([*self.RUN, "aide@dev", "--dry-run", "--store", store.root]) == 0

    def test_a_secret_that_is_not_set(
        self, store: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        agent = write_agent(tmp_path / "asks", "exit 0\n")
        with (agent / "agent.yaml").open("a") as file:
            file.write("env: {TOKEN: '${{ secrets.HUB_TOKEN }}'}\n")
        assert "add it to MLEBENCH_AGENT_SECRETS" in refused(capfd, store, *self.RUN, str(agent))
        monkeypatch.setenv("MLEBENCH_AGENT_SECRETS", '["HUB_TOKEN"]')
        get_settings.cache_clear()
        assert "set HUB_TOKEN in your environment" in refused(capfd, store, *self.RUN, str(agent))
        monkeypatch.setenv("HUB_TOKEN", "t")
        assert main([*self.RUN, str(agent), "--dry-run", "--store", store.root]) == 0

    def test_finished_runs_need_none(
        self, store: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        agent = write_agent(tmp_path / "asks", 'cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"\n')
        with (agent / "agent.yaml").open("a") as file:
            file.write("env: {TOKEN: '${{ secrets.HUB_TOKEN }}'}\n")
        command = ["run", "-c", "diabetes", "--allow-untrusted", "--agent", str(agent), "--run-group", "g"]
        monkeypatch.setenv("MLEBENCH_AGENT_SECRETS", '["HUB_TOKEN"]')
        monkeypatch.setenv("HUB_TOKEN", "t")
        get_settings.cache_clear()
        assert main([*command, "--store", store.root]) == 0
        monkeypatch.delenv("HUB_TOKEN")
        assert main([*command, "--store", store.root]) == 0
        assert "2 reused" in capfd.readouterr().out
