"""Root file systems from Dockerfiles, built by a real podman without a daemon."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.definitions import Agent
from sandbox.errors import BuildError
from sandbox.rootless import building, roots

pytestmark = [pytest.mark.slow, pytest.mark.service("podman")]
LOOK = """
RUN --mount=type=secret,id=pip.conf --mount=type=secret,id=certificates \\
    (env; cat /run/secrets/* 2>/dev/null; cat /proc/net/dev; echo PID $$) >/seen
ENV FROM_IMAGE=yes
"""


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a small image, in a storage of the test."""
    storage = tmp_path / "storage.conf"
    storage.write_text(f'[storage]\ndriver = "vfs"\ngraphroot = "{tmp_path}/images"\nrunroot = "{tmp_path}/run"\n')
    monkeypatch.setenv("CONTAINERS_STORAGE_CONF", str(storage))
    if shutil.which("runc"):  # crun refuses machines with cgroups of both versions
        (tmp_path / "containers.conf").write_text('[engine]\nruntime = "runc"\n')
        monkeypatch.setenv("CONTAINERS_CONF", str(tmp_path / "containers.conf"))
    monkeypatch.setattr("shutil.which", lambda name, which=shutil.which: None if name == "docker" else which(name))
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", dereference=True) as archive:
        programs = [Path("/bin", name) for name in ("sh", "cat", "env", "true")]
        linked = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=True).stdout
        for path in {*map(str, programs), *re.findall(r"(/lib\S+) \(", linked)}:
            archive.add(path)
    subprocess.run(["podman", "import", "-", "small"], input=content.getvalue(), check=True, capture_output=True)
    return "localhost/small"


@pytest.fixture
def agent(make_agent: Callable[..., Agent], base: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Agent:
    """An agent whose Dockerfile looks for credentials and network interfaces."""
    (tmp_path / "certificates").write_text("certificate-4711")
    monkeypatch.setenv("PIP_INDEX_URL", "http://user:secret-4711@127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_CERT", str(tmp_path / "certificates"))
    monkeypatch.setenv("HTTPS_PROXY", "http://user:secret-4711@127.0.0.1:9")
    agent = make_agent("true", name="builder", trusted=False)
    (agent.folder / "Dockerfile").write_text(f"FROM {base}{LOOK}")
    return agent


def built(agent: Agent, scratch: Path, *, trusted: bool) -> roots.Root:
    return building.build_agent(agent, {}, scratch, lambda _: None, trusted=trusted)


def test_a_dockerfile_becomes_a_root(agent: Agent, tmp_path: Path) -> None:
    root = built(agent, tmp_path / "scratch", trusted=True)
    assert root == roots.root_of(agent.image_name, tmp_path / "scratch")
    assert root.environment["FROM_IMAGE"] == "yes"
    assert (root.path / "bin/sh").exists()
    assert "secret-4711" in (root.path / "seen").read_text(), "the index of this machine, as with Docker"
    assert not (root.path / "run/secrets/pip.conf").exists()
    again = building.import_root("copy", f"docker://{agent.image_name}", tmp_path / "scratch", lambda _: None)
    assert again == root


@pytest.mark.parametrize("isolation", ["", "chroot"])
def test_an_agent_that_is_not_trusted_is_built_without_network_and_credentials(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolation: str
) -> None:
    if isolation:
        monkeypatch.setenv("BUILDAH_ISOLATION", isolation)
    root = built(agent.model_copy(update={"trusted": False}), tmp_path / "scratch", trusted=False)
    seen = (root.path / "seen").read_text()
    assert "4711" not in seen
    assert re.findall(r"^\s*(\w+):", seen, re.M) == ["lo"]
    assert seen.endswith("PID 1\n"), "it does not see the operator's processes"


def test_what_only_the_builder_could_fetch_is_refused(agent: Agent, tmp_path: Path) -> None:
    agent = agent.model_copy(update={"trusted": False})
    for line, message in (
        ("FROM docker.io/library/python:3", "no image on this machine: pull or build it"),
        ("FROM localhost/small\nADD http://192.0.2.1/x /x", "uses ADD"),
    ):
        (agent.folder / "Dockerfile").write_text(f"{line}\n")
        with pytest.raises(BuildError, match=message):
            built(agent, tmp_path / "scratch", trusted=False)


def test_a_build_that_fails_says_why(agent: Agent, tmp_path: Path) -> None:
    (agent.folder / "Dockerfile").write_text("FROM localhost/small\nRUN nothing-like-that\n")
    with pytest.raises(BuildError, match=r"could not be built: .*nothing-like-that: not found"):
        built(agent, tmp_path / "scratch", trusted=True)
    assert not (tmp_path / "scratch").exists()
