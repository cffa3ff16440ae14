"""Sizes and times take units wherever they are given, and limits below what any agent needs are refused at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from common.settings import get_settings
from flows.cli import main
from flows.forms import Execution
from sandbox.agent_registry import load_agent
from sandbox.errors import AgentError
from sandbox.limits import GIB
from tests.agents import write_agent

NEEDS_MEMORY = "64 bytes is less than any agent needs, which is 64 MiB: give a unit, such as 64GB"


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLEBENCH_PATIENCE", raising=False)
    monkeypatch.setenv("MLEBENCH_STORE", str(tmp_path / "store"))
    get_settings.cache_clear()
    yield
    get_settings.cache_clear()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "-c", "digits", "--max-memory", "64"], NEEDS_MEMORY),
        (["run", "-c", "digits", "--max-memory", "64XB"], "'64XB' is not a size such as 64GB or 512MiB"),
        (["run", "-c", "digits", "--max-disk", "64KB"], "62.5 KiB is less than any agent needs, which is 16 MiB"),
        (["run", "-c", "digits", "--max-cpus", "0"], "0 is less than any agent needs, which is 1"),
        (["run", "-c", "digits", "--max-cpus", "half"], "'half' is not a whole number"),
        (["run", "-c", "digits", "--time-limit", "0"], "0 seconds is less than any agent needs, which is 1 second"),
        (["run", "-c", "digits", "--time-limit", "1:30"], "'1:30' is not a time such as 90m, 24h, 1h30m"),
        (["run", "-c", "digits", "--checkpoint-every", "often"], "'often' is not a time such as 90m"),
        (["agent", "try", "dummy", "--time-limit", "0s"], "0 seconds is less than any agent needs"),
        (["cancel", "g", "--wait", "a while"], "'a while' is not a time such as 90m"),
        (["doctor", "--silent-for", "-1"], "'-1' is not a time such as 90m"),
        (["grade", "--submission", "x", "--output-dir", "y", "--memory", "0"], "0 is not more than zero"),
        (["grade", "--submission", "x", "--output-dir", "y", "--time-limit", "5x"], "'5x' is not a time such as 90m"),
    ],
)
def test_a_wrong_option_is_refused_before_any_work(
    tmp_path: Path, arguments: list[str], says: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert says in capfd.readouterr().err
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("variable", "text", "says"),
    [
        ("AGENT_MEMORY", "64", NEEDS_MEMORY),
        ("AGENT_DISK", "1MB", "976.6 KiB is less than any agent needs"),
        ("AGENT_TIME_LIMIT", "0.5", "0.5 seconds is less than any agent needs"),
        ("CACHE_LIMIT", "500", "500 is 500 bytes: give a unit, such as 500GB"),
        ("PATIENCE", "long", "'long' is not a time such as 90m"),
    ],
)
@pytest.mark.parametrize("in_file", [False, True], ids=["environment", "mlebench.toml"])
def test_a_wrong_setting_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    variable: str,
    text: str,
    says: str,
    in_file: bool,
) -> None:
    if in_file:
        (tmp_path / "mlebench.toml").write_text(f"{variable.lower()} = {json.dumps(text)}\n")
    else:
        monkeypatch.setenv(f"MLEBENCH_{variable}", text)
    get_settings.cache_clear()
    assert main(["run", "-c", "digits", "--agent", "dummy", "--dry-run"]) in (1, 2)
    assert f"setting MLEBENCH_{variable}: {says}" in capfd.readouterr().err


def test_settings_take_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mlebench.toml").write_text('agent_time_limit = "1h30m"\nfree_disk = "2g"\npatience = 90\n')
    monkeypatch.setenv("MLEBENCH_AGENT_MEMORY", "16g")
    monkeypatch.setenv("MLEBENCH_CHECKPOINT_EVERY", "10m")
    get_settings.cache_clear()
    settings = get_settings()
    assert (settings.agent_time_limit, settings.free_disk, settings.patience) == (5400.0, 2 * GIB, 90.0)
    assert (settings.agent_memory, settings.checkpoint_every) == (16 * GIB, 600.0)


def test_the_dry_run_shows_the_limits_that_were_meant(capfd: pytest.CaptureFixture[str]) -> None:
    options = ["--time-limit", "1h30m", "--max-memory", "16g", "--max-disk", "200GB", "--max-cpus", "1"]
    assert main(["run", "-c", "digits", "--agent", "dummy", "--dry-run", *options]) in (0, 1)
    assert "1.5 hours" in capfd.readouterr().out


def test_definitions_of_agents_take_units(tmp_path: Path) -> None:
    agent = write_agent(tmp_path / "mine", "true")
    (agent / "agent.yaml").write_text(
        "description: x\nlimits: {time_limit_seconds: 24:00:00, memory_bytes: 16g, log_bytes: 1000, disk_bytes: null}\n"
        "checkpoint_every_seconds: 5m\n"
    )
    made = load_agent(agent)
    assert (made.limits.time_limit_seconds, made.limits.memory_bytes, made.limits.log_bytes) == (86400, 16 * GIB, 1000)
    assert made.checkpoint_every_seconds == 300
    (agent / "agent.yaml").write_text("description: x\nlimits: {memory_bytes: 64}\n")
    with pytest.raises(AgentError, match=f"limits: memory_bytes: {NEEDS_MEMORY}"):
        load_agent(agent)


def test_the_form_of_deployments_takes_units() -> None:
    form = Execution.model_validate({"time_limit_seconds": "12h", "max_memory": "64GB", "checkpoint_every": "10m"})
    assert (form.time_limit_seconds, form.max_memory, form.checkpoint_every) == (43200, 64 * 10**9, 600)
    with pytest.raises(ValidationError, match=NEEDS_MEMORY):
        Execution.model_validate({"max_memory": 64})
