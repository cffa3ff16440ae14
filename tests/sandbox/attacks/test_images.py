"""Images, Dockerfiles and variables of an agent that ask the operator's machine for more."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sandbox.backend import RunSpec
from sandbox.definitions import Agent
from sandbox.docker.backend import DockerBackend
from sandbox.docker.build import build_agent, client
from sandbox.docker.engine import connect
from sandbox.errors import AgentError, BuildError
from sandbox.world.layout import NO_GPUS
from tests.sandbox.attacks.conftest import HANDS_IN, Hostile

pytestmark = [pytest.mark.slow, pytest.mark.service("docker")]


@pytest.fixture
def built(make_agent: Callable[..., Agent], base_image: str, unique: str) -> Iterator[Callable[[str, str], Agent]]:
    """An agent with an image of its own, whose Dockerfile goes on after FROM; removed at the end."""
    images: list[str] = []

    def build(dockerfile: str, script: str) -> Agent:
        agent = make_agent(script, name=f"built{unique}", trusted=False)
        (agent.folder / "Dockerfile").write_text(f"FROM {base_image}\n{dockerfile}")
        agent = agent.model_copy(update={"trusted": False})
        images.append(build_agent(agent))
        return agent

    yield build
    for image in images:
        connect().images.remove(image, force=True)


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "certificates").write_text("certificate-4711")
    monkeypatch.setenv("PIP_INDEX_URL", "http://user:secret-4711@127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_CERT", str(tmp_path / "certificates"))
    monkeypatch.setenv("HTTPS_PROXY", "http://user:secret-4711@127.0.0.1:9")


LOOK = """
RUN --mount=type=secret,id=pip.conf --mount=type=secret,id=certificates \\
    (env; cat /run/secrets/* 2>/dev/null; cat /proc/net/dev) >/seen
"""


def test_reading_the_index_credentials_while_the_image_is_built(
    credentials: None, built: Callable[[str, str], Agent]
) -> None:
    agent = built(LOOK, "true")
    seen = subprocess.run(["docker", "run", "--rm", agent.image_name, "cat", "/seen"], capture_output=True, check=True)
    assert b"4711" not in seen.stdout
    assert b"eth0" not in seen.stdout
    assert b"lo:" in seen.stdout


def test_a_build_that_needs_the_network_says_how_to_trust_it(
    make_agent: Callable[..., Agent], base_image: str, unique: str
) -> None:
    agent = make_agent("true", name=f"needs{unique}").model_copy(update={"trusted": False})
    (agent.folder / "Dockerfile").write_text(f"FROM {base_image}\nRUN curl --fail http://192.0.2.1/\n")
    with pytest.raises(BuildError, match=r"built without network and index credentials.* --trusted"):
        build_agent(agent)


def test_a_link_in_the_folder_that_the_image_is_built_from(make_agent: Callable[..., Agent]) -> None:
    agent = make_agent("true", name="linked")
    (agent.folder / "Dockerfile").symlink_to("/etc/passwd")
    with pytest.raises(AgentError, match="Dockerfile is a symbolic link"):
        build_agent(agent)


def test_a_volume_of_the_image_as_disk_outside_of_the_limit(
    contained: Hostile, docker_spec: Callable[..., RunSpec], built: Callable[[str, str], Agent]
) -> None:
    script = HANDS_IN + "df /extra /home/tmp | awk 'NR>1 {print $1}' | sort -u | wc -l; echo x >/extra/x; ls /home/tmp"
    agent = built("VOLUME /extra /home/more /etc/../extra2\n", script)
    before = {each.name for each in connect().volumes.list()}
    done = contained.finish(replace(docker_spec("true"), agent=agent))
    assert done.lines == ["1", "x"]
    assert {each.name for each in connect().volumes.list()} <= before


@pytest.mark.parametrize("value", ["all", "0", "GPU-4711"])
def test_devices_by_a_variable(
    contained: Hostile, docker_spec: Callable[..., RunSpec], built: Callable[[str, str], Agent], value: str
) -> None:
    """With NVIDIA's runtime, variables of the container decide which devices it gets."""
    agent = built(
        f"ENV NVIDIA_VISIBLE_DEVICES={value} NVIDIA_MIG_CONFIG_DEVICES=all NVIDIA_IMEX_CHANNELS=0\n",
        "env | grep ^NVIDIA | sort",
    )
    agent = agent.model_copy(update={"env": {"NVIDIA_VISIBLE_DEVICES": value, "NVIDIA_MIG_MONITOR_DEVICES": "all"}})
    spec = replace(docker_spec("true"), agent=agent, env={"NVIDIA_VISIBLE_DEVICES": value})
    assert contained.finish(spec).lines == [
        "NVIDIA_IMEX_CHANNELS=",
        "NVIDIA_MIG_CONFIG_DEVICES=",
        "NVIDIA_MIG_MONITOR_DEVICES=",
        f"NVIDIA_VISIBLE_DEVICES={NO_GPUS}",
    ]


def test_an_interpreter_that_answers_for_the_services(
    contained: Hostile, docker_spec: Callable[..., RunSpec], built: Callable[[str, str], Agent]
) -> None:
    """The forwarder runs in an image of ours. The agent's python3 is not started anywhere but in its own container."""
    agent = built(
        "RUN mv /usr/bin/python3 /usr/bin/python3.own && ln -s /usr/bin/python3.own /opt/venv/bin/python3.own && "
        "printf '#!/bin/sh\\necho ready; echo taken over; exec sleep 1000\\n' >/usr/bin/python3 && "
        "chmod +x /usr/bin/python3\n",
        "curl --silent --max-time 20 --output /dev/null --write-out '%{http_code}\\n' http://services:5000/health",
    )
    assert contained.finish(replace(docker_spec("true"), agent=agent)).lines == ["503"]


def test_the_password_of_the_operators_proxy(
    docker_spec: Callable[..., RunSpec], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Clients of the engine would set the proxies of their configuration in every container."""
    proxies = {"default": {"httpProxy": "http://user:secret-4711@127.0.0.1:9", "httpsProxy": "http://secret-4711@x:9"}}
    (tmp_path / "config.json").write_text(json.dumps({"proxies": proxies}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with DockerBackend() as backend:
        result = backend.wait(backend.start(docker_spec("env; cat /proc/1/environ")))
    log = (result.logs / "agent.log").read_text()
    assert "HOME=/home" in log
    assert "4711" not in log


@pytest.fixture
def metadata() -> Iterator[tuple[str, list[str]]]:
    """A service of this machine that no container reaches: its URL, and the requests that it got."""
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"role-4711")

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/meta", requests
        server.shutdown()


FETCHING = {
    "a URL": "ADD @url@ /x\n",
    "a URL, in lower case": "add @url@ /x\n",
    "a URL after a line that goes on": "A\\\n# comment\n\nDD @url@ /x\n",
    "a URL behind another escape": "# escape=`\nFROM mlebench-base\nA`\nDD @url@ /x\n",
    "a URL in what is built on it": "ONBUILD ADD @url@ /x\n",
    "a URL after a script whose end looks like a line that goes on": 'COPY <<"x\\" /y\nx\\\nADD @url@ /x\n',
    "an image from a server of the agent": "FROM @registry@/x\n",
    "files of an image from a server of the agent": "COPY --from=@registry@/x / /\n",
    "a mounted image from a server of the agent": "RUN --mount=type=bind,from=@registry@/x,target=/x true\n",
    "a name of a stage that is none": "COPY <<EOF /x\nFROM mlebench-base AS @registry@/x\nEOF\nFROM @registry@/x\n",
    "an image in a variable": "ARG X=@registry@/x\nFROM ${X}\n",
}


@pytest.mark.parametrize("way", FETCHING)
def test_fetching_by_the_builder_itself(
    make_agent: Callable[..., Agent], base_image: str, unique: str, metadata: tuple[str, list[str]], way: str
) -> None:
    """The builder is in the network of the machine, unlike the commands of a Dockerfile."""
    url, requests = metadata
    agent = make_agent("true", name=f"fetches{unique}").model_copy(update={"trusted": False})
    text = FETCHING[way].replace("@url@", url).replace("@registry@", url.split("/")[2])
    (agent.folder / "Dockerfile").write_text(text if text.startswith("#") else f"FROM {base_image}\n{text}")
    with pytest.raises(BuildError, match=r"uses (ADD|ONBUILD)|no image on this machine"):
        build_agent(agent)
    assert requests == []


@pytest.mark.parametrize("line", ["# syntax=evil/frontend", "#SYNTAX = evil/frontend", "\ufeff# syntax=evil/frontend"])
def test_another_syntax_as_a_program_of_the_builder(
    make_agent: Callable[..., Agent], base_image: str, line: str
) -> None:
    agent = make_agent("true", name="syntax").model_copy(update={"trusted": False})
    (agent.folder / "Dockerfile").write_text(f"{line}\nFROM {base_image}\n")
    with pytest.raises(BuildError, match="another syntax"):
        build_agent(agent)


def test_instructions_that_an_image_adds(
    make_agent: Callable[..., Agent], base_image: str, unique: str, metadata: tuple[str, list[str]]
) -> None:
    url, requests = metadata
    image = f"mlebench-triggers{unique}"
    text = f"FROM {base_image}\nONBUILD ADD {url} /x\n".encode()
    subprocess.run([client(), "build", "-q", "--tag", image, "-"], input=text, check=True, capture_output=True)
    try:
        agent = make_agent("true", name=f"on{unique}").model_copy(update={"trusted": False})
        (agent.folder / "Dockerfile").write_text(f"FROM {image}\n")
        with pytest.raises(BuildError, match="which has instructions of its own"):
            build_agent(agent)
        assert requests == []
    finally:
        connect().images.remove(image, force=True)


def test_stages_and_variables_of_a_harmless_dockerfile(make_agent: Callable[..., Agent], base_image: str) -> None:
    """What builds from images of this machine is not refused."""
    agent = make_agent("true", name="harmless").model_copy(update={"trusted": False})
    text = f"ARG BASE={base_image}\nFROM ${{BASE}} AS first\nCOPY agent.yaml /x\nFROM $BASE\nCOPY --from=first /x /y\n"
    (agent.folder / "Dockerfile").write_text(text)
    image = build_agent(agent)
    connect().images.remove(image, force=True)
