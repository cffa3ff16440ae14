"""From nothing to an agent of one's own: `agent new` and `try`, `open`, `rm`, and the settings that `config` shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from common.settings import get_settings
from flows.cli import main
from storage.runs.folders import stored_runs
from tests.stores import Store

ROOT = Path(__file__).parents[2]


def output(capfd: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    capfd.readouterr()
    ended = main(arguments)
    out, err = capfd.readouterr()
    assert ended == code, out + err
    return out + err


def test_a_new_agent_is_tried_its_report_opened_and_its_group_removed(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLEBENCH_AGENT_DIRS", "")
    get_settings.cache_clear()
    said = output(capfd, "agent", "new", "mine", "--into", str(tmp_path))
    assert f"  export MLEBENCH_AGENT_DIRS={tmp_path}\n  mlebench agent try mine\n" in said
    monkeypatch.setenv("MLEBENCH_AGENT_DIRS", str(tmp_path))
    get_settings.cache_clear()
    assert "already exists" in output(capfd, "agent", "new", "mine", "--into", str(tmp_path), code=1)

    said = output(capfd, "agent", "try", "mine", "--store", store.root)
    assert '{"result":"Submission is valid."}' in said
    (run,) = stored_runs(store)
    group = run.record.run_group
    assert (run.record.time_limit_seconds, group.startswith("try-mine-")) == (300.0, True)

    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >{seen}\n')
    browser.chmod(0o755)
    command = [sys.executable, "-m", "flows.cli", "open", group, "--store", store.root]
    opened = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "BROWSER": str(browser)}, capture_output=True, text=True
    )
    address = store.local("reports", group, "report.html").as_uri()
    assert (opened.returncode, opened.stdout.strip(), seen.read_text().strip()) == (0, address, address)

    assert f"Did you mean {group}?" in output(capfd, "rm", group[:-1], "-y", "--store", store.root, code=1)
    assert "give --yes" in output(capfd, "rm", group, "--store", store.root, code=2)
    assert output(capfd, "rm", group, "--dry-run", "--store", store.root).startswith(f"would remove {group}: ")
    assert store.folder_names("runs") == [group]
    assert output(capfd, "rm", group, "-y", "--store", store.root).startswith(f"removed {group}: ")
    left = [path for path in store.local().rglob("*") if group in str(path.relative_to(store.local()))]
    assert left == []
    assert store.local("prepared", "v1", "diabetes").is_dir()
    assert "no report of" in output(capfd, "open", group, "--store", store.root, code=1)


def test_a_name_finds_the_folder_in_the_current_directory_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLEBENCH_AGENT_DIRS", "")
    get_settings.cache_clear()
    monkeypatch.chdir(tmp_path)
    output(capfd, "agent", "new", "beside-me")
    said = output(capfd, "run", "-c", "diabetes", "--agent", "beside-me", "--dry-run", code=2)
    assert "mlebench: agent beside-me is the folder ./beside-me" in said
    assert f"trust its folder with MLEBENCH_AGENT_DIRS={tmp_path / 'beside-me'}" in said, "being near is no trust"
    assert re.search("^trusted +False$", output(capfd, "agents", "beside-me"), re.MULTILINE)
    assert "unknown agent" in output(capfd, "agents", "beside-you", code=2)


def test_an_agent_that_leaves_nothing_fails_its_trial(
    store: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    output(capfd, "agent", "new", "silent", "--into", str(tmp_path))
    (tmp_path / "silent" / "start.sh").write_text("echo what is this\nexit 1\n")
    said = output(capfd, "agent", "try", "silent", "--store", store.root, "--seed", "0", code=1)
    assert "The end of its log (1 line in all):\n  what is this\n" in said


def test_settings_are_shown_with_their_source_and_secrets_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mlebench.toml").write_text(
        'downloads = 7\n[providers.own]\nbase_url = "http://x"\napi_key = "hidden1"\n'
    )
    monkeypatch.setenv("MLEBENCH_AGENTS", "3")
    monkeypatch.delenv("MLEBENCH_PATIENCE")
    monkeypatch.setenv("MLEBENCH_LEDGER_KEY", "hidden2")
    get_settings.cache_clear()
    said = output(capfd, "config")
    rows = {line.split()[0]: line.split()[1:] for line in said.splitlines()[1:]}
    assert rows["downloads"] == ["7", "mlebench.toml"]
    assert rows["agents"] == ["3", "environment"]
    assert rows["patience"][-1] == "default"
    assert rows["ledger_key"] == ["**********", "environment"]
    assert "hidden" not in said
    assert "MLEBENCH_AGENTS = 3  (environment)" in output(capfd, "config", "MLEBENCH_AGENTS")
    assert "Did you mean agents" in output(capfd, "config", "agent", code=2)


@pytest.mark.parametrize(
    ("arguments", "says"), [(["reprot"], "Did you mean report"), (["agent", "knew"], "agent new, agent try")]
)
def test_unknown_commands_name_close_ones(capfd: pytest.CaptureFixture[str], arguments: list[str], says: str) -> None:
    assert says in output(capfd, *arguments, code=2)
