from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.agent_registry import list_agents, load_agent
from sandbox.definitions import BUILTIN_AGENTS, Agent
from sandbox.errors import AgentError
from sandbox.limits import Limits


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "agents" / "mine"
    folder.mkdir(parents=True)
    (folder / "start.sh").write_text("true\n")
    return folder


def define(folder: Path, text: str) -> Path:
    (folder / "agent.yaml").write_text(text)
    return folder


@pytest.mark.parametrize("name", list_agents())
def test_agents_that_ship_are_valid(name: str) -> None:
    agent = load_agent(name)
    assert agent.name == name
    assert agent.folder == BUILTIN_AGENTS / name


def test_our_own_agents_are_trusted() -> None:
    assert load_agent("dummy").trusted
    assert load_agent("baseline").trusted


def test_every_field_is_documented() -> None:
    assert all(field.description for field in Agent.model_fields.values())


def test_a_folder_from_anywhere_cannot_claim_trust(folder: Path) -> None:
    define(folder, "description: Mine.\ntrusted: true\n")
    assert not load_agent(folder).trusted
    assert load_agent(folder, [folder.parent]).trusted, "the operator named its directory"


def test_a_minimal_definition_is_not_trusted(folder: Path) -> None:
    agent = load_agent(define(folder, "description: Mine.\n"))
    assert (agent.name, agent.trusted, agent.start, agent.env, agent.limits) == (
        "mine",
        False,
        "start.sh",
        {},
        Limits(),
    )


def test_a_folder_elsewhere_is_found_by_path_and_by_directory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    define(folder, "description: Mine.\n")
    assert load_agent(str(folder)) == load_agent("mine", [folder.parent]) == load_agent("mine", [folder])
    assert "mine" in list_agents([folder.parent])
    monkeypatch.chdir(folder)
    assert load_agent(".").name == "mine"
    monkeypatch.chdir(folder.parent)
    assert load_agent("./mine").folder == folder


def test_an_agent_of_ones_own_replaces_one_that_ships(folder: Path) -> None:
    own = define(folder.rename(folder.with_name("dummy")), "description: Mine.\n")
    assert load_agent("dummy", [own.parent]).description == "Mine."
    assert load_agent("dummy").description != "Mine."


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("dumy", "did you mean dummy"),
        ("zzzzzz", "known agents: .*baseline.*dummy"),
        ("./nowhere", "no such folder"),
        ("", "known agents"),
    ],
)
def test_an_unknown_agent_gets_help(name: str, part: str) -> None:
    with pytest.raises(AgentError, match=part) as caught:
        load_agent(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("description: [", "not valid YAML"),
        ("", "must contain fields"),
        ("- a\n", "must contain fields"),
        ("trusted: true\n", "description: missing"),
        ("description: x\npicture: y\n", "picture: unknown field"),
        ("description: x\nvariant: y\n", "variant: unknown field"),
        ("description: x\nvariants: [a]\n", "variants: must map names to fields"),
        ("description: x\nnetwork: all\n", "network: "),
        ("description: x\nkwargs: {a: [1]}\n", "kwargs.a"),
        ("description: x\nfolder: /etc\n", "folder: unknown field"),
        ("description: x\nlimits: {memory: 5}\n", "limits.memory: unknown field"),
        ("description: x\nlimits: {memory_bytes: -5}\n", "limits: memory_bytes: -5 is not a size such as 64GB"),
        (
            "description: x\nlimits: {time_limit_seconds: .nan}\n",
            "limits: time_limit_seconds: nan is not a time such as 90m",
        ),
        ("description: x\nlimits: {cpus: many}\n", "limits: cpus: 'many' is not a whole number"),
        ("description: x\ntrusted: perhaps\n", "trusted: "),
        ("description: x\nenv: {a b: c}\n", "env.a b"),
        ("description: x\nenv: {A: 5}\n", "env.A"),
        ('description: x\nenv: {A: "b\\0--ro-bind\\0/\\0/mnt"}\n', "'A' has a NUL character"),
        ('description: x\nkwargs: {a: "b\\0c"}\n', "'a' has a NUL character"),
        ("description: x\nimage: --help\n", "image: "),
        ("description: x\nname: other\n", "make them equal"),
        ("description: x\nstart: other.sh\n", "start file 'other.sh' does not exist"),
        ("description: x\nstart: ../mine/start.sh\n", "inside the agent's folder"),
        ("description: x\nresume: [.a, code/../../x]\n", "is not a plain relative path"),
        ("description: x\nresume: [/etc/passwd]\n", "relative to the agent's home"),
        ("description: x\nresume: [~/.claude]\n", "relative to the agent's home"),
        ("description: x\nresume: [data/train.csv]\n", "is made anew for every run"),
        ("description: x\nresume: [agent/]\n", "is made anew for every run"),
        ("description: x\nresume: ['']\n", "is not a plain relative path"),
        ('description: x\nresume: ["a\\nb"]\n', "control character"),
        ("description: x\nresume: .session\n", "resume: "),
        ("description: x\ncheckpoint_every_seconds: 0\n", "checkpoint_every_seconds: "),
        ("1: 2\n", "field names must be strings"),
        ("description: \x01\n", "not valid YAML"),
        ("description: \x00\n", "has a NUL in line 1"),
    ],
)
def test_a_wrong_definition_is_one_clear_line(folder: Path, text: str, part: str) -> None:
    with pytest.raises(AgentError, match=r"agent\.yaml") as caught:
        load_agent(define(folder, text))
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_directory_that_does_not_exist_is_named_and_hides_no_other(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    define(folder, "description: Mine.\n")
    assert "mine" in list_agents([tmp_path / "nowhere", folder])
    assert f"{tmp_path / 'nowhere'}, which is not a directory" in caplog.text


def test_the_fingerprint_follows_names_contents_and_executable_bits_only(folder: Path, tmp_path: Path) -> None:
    agent = load_agent(define(folder, "description: Mine.\n"))
    first = agent.fingerprint()
    copy = shutil.copytree(folder, tmp_path / "elsewhere" / "mine")
    (copy / "__pycache__").mkdir()
    (copy / "__pycache__" / "x.pyc").write_bytes(b"x")
    assert load_agent(copy).fingerprint() == first
    (folder / "start.sh").chmod(0o755)
    second = agent.fingerprint()
    (folder / "more").mkdir()
    (folder / "more" / "file").write_text("")
    assert len({first, second, agent.fingerprint()}) == 3


def test_an_agent_names_its_session_and_without_one_begins_anew(folder: Path) -> None:
    assert load_agent(define(folder, "description: x\n")).resume is None
    assert load_agent(define(folder, "description: x\nresume: []\n")).resume == []
    found = load_agent(define(folder, "description: x\nresume: [.session/, agent/workspaces]\n"))
    assert found.resume == [".session", "agent/workspaces"]


@pytest.mark.parametrize("name", ["aide", "claude-code", "codex", "mini-swe-agent", "opencode"])
def test_agents_whose_sessions_can_be_continued_say_so(name: str) -> None:
    assert load_agent(name).resume is not None


def test_overrides_leave_out_none() -> None:
    limits = Limits(memory_bytes=5).override(memory_bytes=None, cpus=2)
    assert (limits.memory_bytes, limits.cpus) == (5, 2)


def test_importing_the_sandbox_is_cheap() -> None:
    heavy = "pandas numpy sklearn dask distributed prefect docker"
    code = f"import sys, sandbox.process.backend; print([m for m in '{heavy}'.split() if m in sys.modules])"
    assert (
        subprocess.check_output([sys.executable, "-c", code], text=True, cwd=Path(__file__).parents[2]).strip() == "[]"
    )


def test_the_supervisor_needs_no_pydantic() -> None:
    code = "import sys, sandbox.process.supervisor; print('pydantic' in sys.modules)"
    assert (
        subprocess.check_output([sys.executable, "-c", code], text=True, cwd=Path(__file__).parents[2]).strip()
        == "False"
    )


def test_an_agent_gets_the_files_that_it_includes(folder: Path) -> None:
    plain = load_agent(define(folder, "description: Mine.\n"))
    agent = load_agent(define(folder, "description: Mine.\nincludes: [continuing.py]\n"))
    assert [path.name for path in agent.files()] == ["agent.yaml", "continuing.py", "start.sh"]
    with agent.opened(Path("continuing.py")) as file:
        assert b"class Pace" in os.read(file, 100_000)
    assert agent.fingerprint() != plain.fingerprint()
    (folder / "continuing.py").touch()
    with pytest.raises(AgentError, match=r"also includes: rename one of continuing\.py"):
        list(agent.files())
    with pytest.raises(AgentError, match=r"other.py. does not ship with the package; there is continuing.py"):
        load_agent(define(folder, "description: Mine.\nincludes: [other.py]\n"))
