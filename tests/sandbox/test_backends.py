"""The registry of backends: names, what is registered, and what is checked before a run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox import backends
from sandbox.agent_registry import load_agent
from sandbox.backend import Capabilities
from sandbox.errors import BackendError, UntrustedAgentRefused
from sandbox.isolation import Isolation
from sandbox.process.backend import ProcessBackend
from tests.agents import write_agent

Register = Callable[[str, str], None]


@pytest.fixture
def register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Register]:
    """Installs a distribution with a backend for the test: its name, and the entry point's value."""
    folder = tmp_path / "site"
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(backends, "_loaded", {})

    def install(name: str, value: str) -> None:
        information = folder / f"{name}_backend-1.0.dist-info"
        information.mkdir(parents=True)
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-backend\nVersion: 1.0\n")
        (information / "entry_points.txt").write_text(f"[mlebench.backends]\n{name} = {value}\n")
        backends._registered.cache_clear()

    yield install
    backends._registered.cache_clear()


class Limited(ProcessBackend):
    """Isolates, has one network policy and no GPUs."""

    name = "limited"
    capabilities = Capabilities(isolates=True, networks=("gateway",))


def test_the_names_are_those_of_the_project_and_of_distributions(register: Register) -> None:
    register("other", "other.module:Backend")
    assert backends.names() == ["process", "docker", "rootless", "other"]
    assert backends.load("process") is ProcessBackend


def test_a_registered_backend_is_imported_when_it_is_used(register: Register) -> None:
    register("limited", f"{__name__}:Limited")
    assert backends.load("limited").name == "limited"
    assert backends.loaded() == [backends.load("limited")]


def test_distributions_do_not_replace_backends_of_the_project(register: Register) -> None:
    register("process", f"{__name__}:Limited")
    assert backends.names() == ["process", "docker", "rootless"]
    assert backends.load("process") is ProcessBackend


def test_a_name_that_nobody_has() -> None:
    with pytest.raises(
        BackendError, match=r"no backend 'dokcer': known are process, docker, rootless\. Did you mean docker"
    ):
        backends.load("dokcer")


def test_a_backend_that_cannot_be_imported(register: Register, tmp_path: Path) -> None:
    register("broken", "no_such_module:Backend")
    with pytest.raises(BackendError, match=r"backend 'broken' of broken-backend cannot be imported \(No module named"):
        backends.load("broken")
    assert "broken" not in backends.usable()
    assert backends.is_running("broken", tmp_path), "its slots stay taken"
    assert isinstance(backends.gpus_in_use(), set)


def test_what_a_run_asks_for_is_compared_with_what_the_backend_can(register: Register, tmp_path: Path) -> None:
    register("limited", f"{__name__}:Limited")
    agent = load_agent(str(write_agent(tmp_path / "agent", "true")))
    backends.require_supported(agent, Isolation("limited"))
    with pytest.raises(BackendError, match="limited backend has no network policy 'open': use --network gateway"):
        backends.require_supported(agent, Isolation("limited", "open"))
    wants = agent.model_copy(update={"limits": agent.limits.override(gpus=1)})
    with pytest.raises(BackendError, match="asks for GPUs, and the limited backend gives none"):
        backends.require_supported(wants, Isolation("limited"))
    backends.require_supported(wants.model_copy(update={"trusted": True}), Isolation("process"))


def test_only_backends_that_isolate_take_agents_that_are_not_trusted(tmp_path: Path) -> None:
    stranger = load_agent(str(write_agent(tmp_path / "agent", "true"))).model_copy(update={"trusted": False})
    for name in ("docker", "rootless"):
        backends.require_supported(stranger, Isolation(name))
    backends.require_supported(stranger, Isolation("process", allow_untrusted=True))
    with pytest.raises(UntrustedAgentRefused, match="use --backend docker"):
        backends.require_supported(stranger, Isolation("process"))


def test_conditions_of_each_backend_tell_it_apart(register: Register) -> None:
    register("limited", f"{__name__}:Limited")
    assert backends.conditions(Isolation("process", "open")) == {}
    assert backends.conditions(Isolation("docker")) == {"network": "gateway", "runtime": "default"}
    assert (backends.policy(Isolation("process")), backends.policy(Isolation("docker"))) == (None, "gateway")


def test_listing_the_backends_imports_none() -> None:
    code = "from sandbox import backends; backends.names(); import sys; print('sandbox.docker.backend' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"False\n"
