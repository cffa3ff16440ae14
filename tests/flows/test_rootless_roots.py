"""`mlebench build --rootless`, and what du, gc and doctor say about root file systems."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import Mock

import pytest
from click.testing import CliRunner

from common.settings import get_settings
from flows.cli import cli, main
from flows.diagnosis import health
from sandbox.errors import AgentError
from sandbox.rootless import roots
from tests.sandbox.rootless.images import archive, docker_save, entry
from tests.stores import Store


def mlebench(*arguments: str) -> str:
    result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    assert not result.return_value, result.output
    return result.output


def test_a_root_is_built_listed_and_collected(store: Store, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    made = []
    for number in range(2):
        source = docker_save(tmp_path / f"{number}.tar", [archive(entry("bin/sh"), entry("usr/file", b"%d" % number))])
        output = mlebench("build", "base", "--rootless", "--from", str(source))
        made.append(roots.root_of("mlebench-base", get_settings().scratch))
        assert output == f"built mlebench-base in {made[-1].path}\n"
    listed = map(json.loads, mlebench("du", "--store", store.root, "--json").splitlines())
    assert [(item["name"], item["state"]) for item in listed if item["kind"] == "roots"] == [
        ("mlebench-base", "complete"),
        (made[0].digest[:12], "old"),
    ]
    (made[0].path.parent / "root.json").write_bytes(b"")  # as a machine without power leaves it
    listed = map(json.loads, mlebench("du", "--store", store.root, "--json").splitlines())
    assert {item["name"]: item["state"] for item in listed if item["kind"] == "roots"} == {
        "mlebench-base": "complete",
        made[0].digest[:12]: "damaged",
    }
    assert f"would remove roots {made[0].digest[:12]}" in mlebench(
        "gc", "--orphans", "--dry-run", "--store", store.root
    )
    assert f"removed roots {made[0].digest[:12]}" in mlebench("gc", "--orphans", "--store", store.root)
    assert [root.path.exists() for root in made] == [False, True]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "x"], "--from needs --rootless"),
        (["--rootless", "--from", "x", "--trusted"], "leave out --base, --build-arg and --trusted"),
        (["--rootless", "--from", "/nowhere/x.tar"], "/nowhere/x.tar does not exist: --from takes docker://IMAGE"),
    ],
)
def test_wrong_uses_are_told_in_a_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", "base", *arguments]) == (1 if "/nowhere" in message else 2)
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_doctor_says_whether_agents_can_be_isolated_and_what_limits_them(monkeypatch: pytest.MonkeyPatch) -> None:
    found = health.check_rootless()
    assert found.about == "rootless"
    assert "memory by" in found.message or found.remedy
    monkeypatch.setenv("PATH", "/nowhere")
    found = health.check_rootless()
    assert (found.verdict, found.message) == ("warn", "--backend rootless cannot run: bubblewrap is not installed")


@pytest.fixture
def untrusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for agents that are not trusted. Nothing builds: no test changes images of this machine."""
    monkeypatch.setenv("MLEBENCH_AGENT_DIRS", "[]")
    get_settings.cache_clear()
    for builder in ("sandbox.docker.build.build", "sandbox.docker.build.run"):
        monkeypatch.setattr(builder, Mock(side_effect=AssertionError("it is built")))
    return tmp_path


def write_agent(folder: Path, definition: str, dockerfile: bool) -> str:
    folder.mkdir()
    (folder / "agent.yaml").write_text(f"description: Made here.\ntrusted: true\n{definition}\n")
    (folder / "start.sh").touch()
    if dockerfile:
        (folder / "Dockerfile").write_text("FROM mlebench-base\n")
    return str(folder)


@pytest.mark.parametrize("how", [["--rootless", "--from", "x.tar"], ["--rootless"], []])
@pytest.mark.parametrize(
    ("name", "definition", "dockerfile"),
    [
        ("mine", "image: mlebench-base", False),
        ("mine", "image: index.docker.io/library/mlebench-base:latest", False),
        ("mine", "image: mlebench-agent-aide", True),
        ("mine", "image: python:3.12-slim", True),
        ("mine", "", False),
        ("aide", "", True),
    ],
)
def test_an_agent_that_is_not_trusted_replaces_no_image_of_others(
    untrusted: Path, name: str, definition: str, dockerfile: bool, how: list[str]
) -> None:
    agent = write_agent(untrusted / name, definition, dockerfile)
    with pytest.raises(AgentError, match=r"may be that of others|nothing to build"):
        mlebench("build", agent, *how)


def test_other_images_of_agents_that_are_not_trusted_are_imported(untrusted: Path) -> None:
    source = docker_save(untrusted / "i.tar", [archive(entry("bin/sh"))])
    for name, definition, dockerfile in (("other", "image: acme/agent:3", False), ("own", "", True)):
        agent = write_agent(untrusted / name, definition, dockerfile)
        assert "built " in mlebench("build", agent, "--rootless", "--from", str(source))
