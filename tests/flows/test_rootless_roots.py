"""`mlebench build --rootless`, and what du, gc and doctor say about root file systems."""

from __future__ import annotations

import json
import os
from pathlib import Path
from unittest.mock import Mock

import pytest
from click.testing import CliRunner

from common.settings import get_settings
from flows.cli import cli, main
from flows.diagnosis import health
from sandbox.definitions import BASE_IMAGE
from sandbox.errors import AgentError
from sandbox.rootless import roots
from sandbox.rootless.building import import_root
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


def test_doctor_says_whether_agents_can_be_isolated_and_what_limits_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (missing := health.check_rootless(tmp_path)).remedy:  # this machine allows it
        assert (missing.verdict, "mlebench build base --rootless makes it" in missing.message) == ("warn", True)
    import_root(BASE_IMAGE, str(docker_save(tmp_path / "i.tar", [archive(entry("bin/sh"))])), tmp_path, print)
    found = health.check_rootless(tmp_path)
    assert found.about == "rootless"
    assert "memory by" in found.message or found.remedy
    monkeypatch.setenv("PATH", "/nowhere")
    found = health.check_rootless(tmp_path)
    assert (found.verdict, found.message) == ("warn", "--backend rootless cannot run: bubblewrap is not installed")


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}")
    (folder / name).chmod(0o755)


def test_a_build_that_fails_names_the_other_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.defpath}")
    program(tmp_path, "podman", "echo 'Error: no such host'; exit 125\n")
    assert main(["build", "base", "--rootless"]) == 1
    error = capsys.readouterr().err
    assert "could not be built: Error: no such host" in error
    assert "--from takes what another machine has made: an archive of docker save" in error
    for name in ("docker", "buildah"):
        program(tmp_path, name, f"echo 'Error: {name} does not have it'; exit 1\n")
    assert main(["build", "base", "--rootless", "--from", "docker://x"]) == 1
    error = capsys.readouterr().err
    assert "docker cannot save image x: Error: docker does not have it" in error
    assert "buildah cannot save image x: Error: buildah does not have it" in error
    assert not list(get_settings().scratch.glob("roots/.new-*"))


def test_debootstrap_shows_its_steps_and_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program(tmp_path, "mmdebstrap", "echo 'I: downloading'; echo 'E: no such suite'; echo 'I: cleaning up'; exit 1\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.defpath}")
    assert main(["build", "base", "--rootless", "--from", "debootstrap:nosuite"]) == 1
    error = capsys.readouterr().err
    assert "I: downloading\nI: cleaning up\n" in error
    assert "Debian nosuite cannot be installed: E: no such suite (--verbose shows all)" in error


def test_the_base_image_in_place_of_an_agents_own_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = str(docker_save(tmp_path / "i.tar", [archive(entry("bin/sh"))]))
    for agent, told in (("aide", False), ("base", False), ("aide", True)):
        assert main(["build", agent, "--rootless", "--from", source]) == 0
        assert ("is the base image; software that aide needs" in capsys.readouterr().err) is told


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
