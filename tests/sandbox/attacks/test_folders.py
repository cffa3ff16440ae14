"""An agent's folder from somewhere else, whose files are not what they seem."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.definitions import Agent
from sandbox.errors import AgentError
from sandbox.world.layout import lay_out
from tests.sandbox.attacks.conftest import Hostile


@pytest.fixture
def answers(prepared: Path) -> Path:
    return prepared / "private" / "test.csv"


def refused(agent: Agent, hostile: Hostile) -> str:
    """The message with which a run of the agent is refused; nothing of the run exists then."""
    spec = replace(hostile.spec("true"), agent=agent)
    with pytest.raises(AgentError) as caught:
        hostile.finish(spec)
    assert not (spec.workdir / "home").exists()
    with pytest.raises(AgentError):
        agent.fingerprint()
    return str(caught.value)


def test_a_link_to_the_answers_in_the_agents_folder(
    make_folder: Callable[..., Agent], answers: Path, hostile: Hostile
) -> None:
    agent = make_folder(lambda folder: (folder / "x").symlink_to(answers), "cat $AGENT_DIR/x")
    assert "x is a symbolic link" in refused(agent, hostile)


def test_a_link_to_the_operators_environment_in_the_agents_folder(
    make_folder: Callable[..., Agent], hostile: Hostile
) -> None:
    agent = make_folder(lambda folder: (folder / "x").symlink_to("/proc/self/environ"), "cat $AGENT_DIR/x")
    assert "x is a symbolic link" in refused(agent, hostile)


def test_a_start_file_that_is_a_link(make_folder: Callable[..., Agent], answers: Path, hostile: Hostile) -> None:
    agent = make_folder(lambda folder: None)
    (agent.folder / "start.sh").unlink()
    (agent.folder / "start.sh").symlink_to(answers)
    assert "start.sh is a symbolic link" in refused(agent, hostile)


def test_a_definition_that_is_a_link(make_folder: Callable[..., Agent], answers: Path, hostile: Hostile) -> None:
    agent = make_folder(lambda folder: None)
    (agent.folder / "agent.yaml").unlink()
    (agent.folder / "agent.yaml").symlink_to(answers)
    assert "agent.yaml is a symbolic link" in refused(agent, hostile)


def test_a_folder_that_is_a_link(make_folder: Callable[..., Agent], answers: Path, hostile: Hostile) -> None:
    agent = make_folder(lambda folder: (folder / "deep").symlink_to(answers.parent), "cat $AGENT_DIR/deep/test.csv")
    assert "deep is a symbolic link" in refused(agent, hostile)


def test_a_pipe_that_would_be_read_for_ever(make_folder: Callable[..., Agent], hostile: Hostile) -> None:
    agent = make_folder(lambda folder: os.mkfifo(folder / "x"))
    assert "x is a pipe" in refused(agent, hostile)


def test_a_socket_in_the_agents_folder(make_folder: Callable[..., Agent], hostile: Hostile) -> None:
    def bind(folder: Path) -> None:
        with socket.socket(socket.AF_UNIX) as server:
            here = os.getcwd()  # noqa: PTH109
            os.chdir(folder)
            server.bind("x")
            os.chdir(here)

    assert "x is a socket" in refused(make_folder(bind), hostile)


def test_a_file_exchanged_for_a_link_after_it_was_checked(
    make_folder: Callable[..., Agent],
    answers: Path,
    hostile: Hostile,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    agent = make_folder(lambda folder: (folder / "x").write_text("harmless"))
    listed = list(agent.files())
    monkeypatch.setattr(Agent, "files", lambda _: iter(listed))
    (agent.folder / "x").unlink()
    (agent.folder / "x").symlink_to(answers)
    with pytest.raises(AgentError, match="x is a symbolic link"):
        agent.fingerprint()
    with pytest.raises(AgentError, match="x is a symbolic link"):
        lay_out(replace(hostile.spec("true"), agent=agent), tmp_path / "home")
    assert not (tmp_path / "home" / "agent" / "x").exists()


def test_permissions_of_another_user_on_copied_files(make_folder: Callable[..., Agent], hostile: Hostile) -> None:
    """Set-user-id bits of the agent's files do not reach its home."""

    def prepare(folder: Path) -> None:
        (folder / "tool").write_text("#!/bin/sh\n")
        (folder / "tool").chmod(0o6755)

    agent = make_folder(prepare, 'stat -c %a "$AGENT_DIR/tool"')
    assert hostile.finish(replace(hostile.spec("true"), agent=agent)).lines == ["755"]


def test_a_sparse_file_that_is_copied_for_every_run(make_folder: Callable[..., Agent], hostile: Hostile) -> None:
    def prepare(folder: Path) -> None:
        with (folder / "large").open("wb") as file:
            file.truncate(1 << 40)

    assert "has more than 10 GiB" in refused(make_folder(prepare), hostile)
