"""Variants of an agent, its arguments, its secrets, and the commands that show it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.cli import main
from sandbox.agent_registry import load_agent, variants_of
from sandbox.definitions import BUILTIN_AGENTS, Agent
from sandbox.errors import AgentError
from sandbox.secrets import resolve

VARIANTS = {
    "dev": {"kwargs": {"steps": 8}, "limits": {"time_limit_seconds": 60}},
    "large": {"extends": "dev", "kwargs": {"model": "large"}},
    "loop": {"extends": "again"},
    "again": {"extends": "loop"},
}


@pytest.fixture
def folder(make_agent: Callable[..., Agent]) -> Path:
    return make_agent("true", kwargs={"steps": 500, "fast": True}, limits={"cpus": 2}, variants=VARIANTS).folder


def test_a_variant_is_laid_over_what_it_extends(folder: Path) -> None:
    plain, large = load_agent(folder), load_agent(f"{folder}@large")
    assert plain.kwargs == {"steps": 500, "fast": True}
    assert large.kwargs == {"steps": 8, "fast": True, "model": "large"}
    assert (large.limits.cpus, large.limits.time_limit_seconds) == (2, 60)
    assert (plain.full_name, large.full_name, large.name) == ("made", "made@large", "made")
    assert plain.fingerprint() != large.fingerprint() != load_agent(f"{folder}@dev").fingerprint()
    assert variants_of(plain) == sorted(VARIANTS)  # the order of the file, which is written sorted


def test_names_with_a_slash_or_an_at_sign(folder: Path) -> None:
    assert load_agent("made/dev", [folder.parent]) == load_agent("made@dev", [folder.parent])
    assert load_agent("aide/dev").kwargs["agent.steps"] == 8


@pytest.mark.parametrize(
    ("variant", "part"),
    [("devv", "no variant 'devv': did you mean dev?"), ("zzz", "known variants: "), ("loop", "loop extends again")],
)
def test_a_wrong_variant_is_one_clear_line(folder: Path, variant: str, part: str) -> None:
    with pytest.raises(AgentError) as caught:
        load_agent(f"{folder}@{variant}")
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_arguments_in_both_styles(make_agent: Callable[..., Agent]) -> None:
    assert make_agent("true", kwargs={"steps": 5, "fast": True}).arguments() == ["--fast", "true", "--steps", "5"]
    omegaconf = make_agent("true", kwargs={"agent.steps": 5, "a": "b c"}, kwargs_type="omegaconf")
    assert omegaconf.arguments() == ["a=b c", "agent.steps=5"]


@pytest.mark.parametrize(
    ("agent", "name", "steps"), [("aide", "agent.steps", 500), ("openhands", "steps", 500), ("mlab", "steps", 2000)]
)
def test_published_limits(agent: str, name: str, steps: int) -> None:
    assert load_agent(agent).kwargs[name] == steps
    assert load_agent(agent).limits.time_limit_seconds == 24 * 3600


def test_what_agents_are_built_from_is_pinned() -> None:
    dockerfile = {name: (BUILTIN_AGENTS / name / "Dockerfile").read_text() for name in ("aide", "mlab")}
    assert re.search(r"^ARG VERSION=\d+\.\d+\.\d+$", dockerfile["aide"], re.MULTILINE)
    assert re.search(r"^ARG REVISION=[0-9a-f]{40}$", dockerfile["mlab"], re.MULTILINE)
    lists = list(BUILTIN_AGENTS.glob("*/requirements.txt"))
    assert {path.parent.name for path in lists} == {"aide", "mini-swe-agent", "mlab", "openhands"}
    for path in lists:
        text = re.sub(r" \\\n +--hash=\S+", "", path.read_text())
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines), path
        installs = re.findall(r"pip (?:--python \S+ )?install (.*)", (path.parent / "Dockerfile").read_text())
        assert all(each.startswith("--no-deps ") for each in installs), "what is not in the list is not installed"
    for name in ("claude-code", "codex", "opencode"):
        assert "npm-cli.js ci " in (BUILTIN_AGENTS / name / "Dockerfile").read_text()  # from the lock
        assert "--hash=sha256:" in (BUILTIN_AGENTS / name / "npm.txt").read_text()
        assert (BUILTIN_AGENTS / name / "package-lock.json").exists()


def test_the_documented_versions_are_those_that_are_built() -> None:
    page = (BUILTIN_AGENTS.parents[1] / "docs" / "shipped-agents.md").read_text()
    for name in ("claude-code", "codex", "opencode"):
        lock = (BUILTIN_AGENTS / name / "package-lock.json").read_text()
        built = {found.partition("-")[0] for found in re.findall(r'"version": "([\d.]+[^"]*)"', lock)}
        assert re.findall(rf"^\| `{name}` \| .* \| ([\d.]+) \| \|$", page, re.MULTILINE) == list(built)


def test_secrets_come_by_the_operators_word_only() -> None:
    env = {"A": "x-${{ secrets.MINE }}-${{secrets.MINE}}", "B": "plain", "OPENAI_API_KEY": "${{ secrets.KEY }}"}
    operator = {"MINE": "m", "KEY": "real"}
    resolved = resolve("a", env, allowed=["MINE"], operator=operator, provided=["OPENAI_API_KEY"])
    assert resolved == {"A": "x-m-m", "B": "plain"}


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("${{ secrets.KEY }}", "MLEBENCH_AGENT_SECRETS"),
        ("${{ secrets.UNSET }}", "set UNSET in your environment"),
        ("${{ env.KEY }}", "may only refer to secrets.NAME"),
    ],
)
def test_secrets_that_are_not_given(text: str, part: str) -> None:
    with pytest.raises(AgentError) as caught:
        resolve("a", {"X": text}, allowed=["UNSET"], operator={"KEY": "real"})
    assert part in str(caught.value)
    assert "real" not in str(caught.value)


def test_the_commands_show_agents(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agents"]) == 0
    listed = capsys.readouterr().out
    assert re.search("^dummy +trusted ", listed, re.MULTILINE)
    assert re.search("^aide .*@dev", listed, re.MULTILINE)
    assert main(["agents", "aide@dev"]) == 0
    assert "agent.steps=8" in capsys.readouterr().out
    assert main(["agents", "nobody"]) == 2
    assert main(["build", "aide", "--build-arg", "x"]) == 2
