"""What is missing or breaks, in one clear line; other runs unharmed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox.agent_registry import load_agent
from sandbox.backend import Allocation, RunSpec
from sandbox.definitions import Agent
from sandbox.docker import backend as backend_module
from sandbox.docker import watch
from sandbox.docker.backend import DockerBackend
from sandbox.docker.build import build_agent, build_base
from sandbox.docker.containers import ContainerConfig, options
from sandbox.docker.engine import EngineUnreachable, connect
from sandbox.docker.engines import Engine
from sandbox.errors import BackendError, BuildError
from sandbox.isolation import Isolation
from tests.sandbox.docker.conftest import Relay, Waiting, remains_of

pytestmark = pytest.mark.slow


def one_line(caught: pytest.ExceptionInfo[BackendError]) -> str:
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(EngineUnreachable) as caught:
        DockerBackend()
    assert one_line(caught).startswith("no Docker engine answers (no such file or directory): start it")


def test_an_unknown_runtime() -> None:
    with pytest.raises(BackendError, match=r"has no runtime 'nope' \(available: .*runc") as caught:
        DockerBackend(runtime="nope")
    one_line(caught)


def test_a_known_runtime(docker_spec: Callable[..., RunSpec]) -> None:
    with DockerBackend(runtime="runc") as backend:
        assert backend.wait(backend.start(docker_spec("true"))).status == "completed"


def test_a_run_that_is_being_started_ends_with_its_backend(
    docker_spec: Callable[..., RunSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of a nightly may be over, or Ctrl-C pressed, in the moment in which a container is started."""
    backend = DockerBackend()
    launch = backend_module.launch

    def closed_meanwhile(*arguments: Any) -> None:
        launch(*arguments)
        backend.close()

    monkeypatch.setattr(backend_module, "launch", closed_meanwhile)
    spec = docker_spec("exec sleep 100000", time_limit_seconds=60)
    assert backend.wait(backend.start(spec)).status == "cancelled"
    assert remains_of(spec.workdir) == []


@pytest.mark.parametrize("runtime", ["runsc", "sysbox-runc"])
def test_a_runtime_that_isolates_more(runtime: str, docker_spec: Callable[..., RunSpec]) -> None:
    """Runs where the engine has it: a submission is collected, limits hold, and only the services are reached."""
    if runtime not in connect().info()["Runtimes"]:
        pytest.skip(f"the engine has no runtime {runtime}")
    script = """
        printf "id,label\\n1,1\\n" >"$SUBMISSION_DIR/submission.csv"
        curl --silent --output /dev/null --write-out '%{http_code}\\n' http://services:5000/health
        python3 -c "import socket; socket.create_connection((\'1.1.1.1\', 80), 3)" 2>/dev/null || echo no internet
        echo x >/etc/x || echo no rights
        sleep 600
    """
    with DockerBackend(runtime=runtime) as backend:
        # gVisor's own threads count as processes, too.
        result = backend.wait(backend.start(docker_spec(script, time_limit_seconds=20, processes=1000)))
    assert result.status == "timeout"
    assert result.submission is not None
    lines = (result.logs / "agent.log").read_text().splitlines()
    assert [line for line in lines if "/etc/x" not in line] == ["503", "no internet", "no rights"]


def test_a_missing_image(
    docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec], make_agent: Callable[..., Agent]
) -> None:
    spec = replace(docker_spec(""), agent=make_agent("true", image="mlebench-no-such-image"))
    with pytest.raises(BackendError, match=r"image mlebench-no-such-image is missing: mlebench build .*made"):
        docker_backend.start(spec)
    assert remains_of(spec.workdir) == []
    with pytest.raises(BackendError, match="is missing"):
        DockerBackend.require_runnable(spec.agent, Isolation("docker"))


def test_an_image_that_cannot_run_the_agent(
    docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec], make_agent: Callable[..., Agent]
) -> None:
    agent = make_agent("true")
    (agent.folder / "Dockerfile").write_text("FROM scratch\nCOPY start.sh /\n")
    build_agent(agent)
    spec = replace(docker_spec(""), agent=agent)
    result = docker_backend.wait(docker_backend.start(spec))
    assert (result.status, result.exit_code) == ("crashed", 127)
    assert "exec timeout failed" in (result.logs / "agent.log").read_text()
    assert remains_of(spec.workdir) == []
    connect().images.remove(agent.image_name)


def test_a_failing_build(make_agent: Callable[..., Agent], base_image: str) -> None:
    agent = make_agent("true")
    with pytest.raises(BuildError, match="has no Dockerfile: it runs in mlebench-base"):
        build_agent(agent)
    (agent.folder / "Dockerfile").write_text(f"FROM {base_image}\nRUN echo to no avail; exit 7\n")
    lines: list[str] = []
    with pytest.raises(BuildError, match=r"image mlebench-agent-made could not be built: .*exit code: 7") as caught:
        build_agent(agent, on_line=lines.append)
    one_line(caught)
    assert any("to no avail" in line for line in lines)
    with pytest.raises(BuildError, match="no list of packages 'none'"):
        build_base(packages="none")


def test_gpus_are_assigned_by_the_host_and_hidden_otherwise(
    docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec]
) -> None:
    """What the engine is asked for; no engine here has NVIDIA's runtime."""
    spec = docker_spec("true", gpus=2)
    with pytest.raises(BackendError, match=r"has 0 GPUs instead of 2"):
        docker_backend.start(spec)
    config = ContainerConfig(connect().images.get(spec.agent.image_name), Engine(), "gateway")

    def asked_for(spec: RunSpec) -> tuple[str, list[str] | None, str]:
        made = options(spec, config, home=spec.workdir, command=[], labels={})
        requests = made["device_requests"]
        gpus = requests[0]["DeviceIDs"] if requests else None
        return made["environment"]["NVIDIA_VISIBLE_DEVICES"], gpus, made["labels"]["mlebench.gpus"]

    assert asked_for(replace(spec, allocation=Allocation(("a", "b")))) == ("a,b", ["a", "b"], "a,b")
    sly = replace(docker_spec("true"), env={"NVIDIA_VISIBLE_DEVICES": "all"})
    assert asked_for(sly) == ("void", None, "")


def test_privileged_agents_are_refused_unless_the_operator_insists(
    docker_backend: DockerBackend, docker_spec: Callable[..., RunSpec], make_agent: Callable[..., Agent]
) -> None:
    spec = replace(docker_spec(""), agent=make_agent("id -u", privileged=True))
    with pytest.raises(BackendError, match="--allow-privileged"):
        docker_backend.start(spec)
    assert not spec.workdir.exists()
    # Whether such a container can run is the machine's affair; that it is asked for is ours.
    made = options(
        spec,
        ContainerConfig(connect().images.get(spec.agent.image_name), Engine(), "gateway"),
        home=spec.workdir,
        command=[],
        labels={},
    )
    assert made["privileged"] is True
    DockerBackend.require_runnable(spec.agent, Isolation("docker", allow_privileged=True))


def test_the_engine_goes_away_in_mid_run(
    relay: Relay,
    docker_backend: DockerBackend,
    docker_spec: Callable[..., RunSpec],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch, "ENGINE_SECONDS", 1.0)
    unlucky = DockerBackend(client=relay.client())
    spec, other = docker_spec("echo begun; sleep 60"), docker_spec("echo begun; sleep 5", run_id="other")
    fine = Waiting(docker_backend, docker_backend.start(other))
    waiting = Waiting(unlucky, unlucky.start(spec))
    waiting.until("begun")
    relay.close()
    with pytest.raises(EngineUnreachable, match="the Docker engine does not answer") as caught:
        waiting.result()
    one_line(caught)
    assert fine.result().status == "completed"
    unlucky.close()


def test_hosts_an_agent_wants_need_the_operators_word(make_agent: Callable[..., Agent], base_image: str) -> None:
    agent = make_agent("true", hosts=["example.com"], network="allowlist")
    with pytest.raises(BackendError, match=r"requests access to example\.com: add hosts to MLEBENCH_ALLOWED_HOSTS"):
        DockerBackend.require_runnable(agent, Isolation("docker", "allowlist"))
    DockerBackend.require_runnable(agent, Isolation("docker", "allowlist"), ["example.com"])
    DockerBackend.require_runnable(load_agent("dummy"), Isolation("docker"))
