"""Build images: the base image, and agents' images from their Dockerfiles. Secrets need BuildKit, podman or buildah.

The pip configuration and certificates of this machine are passed to the build as the secrets `pip.conf` and
`certificates`. A Dockerfile mounts them where pip looks for them (see images/base/Dockerfile); they do not become part
of the image. The build of an agent that is not trusted gets neither them nor a network.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from sandbox.definitions import BASE_IMAGE, BUILTIN_AGENTS, DOCKERFILE, Agent
from sandbox.docker.containers import look_up_image
from sandbox.docker.dockerfile import require_offline
from sandbox.docker.engine import PREFIX, connect
from sandbox.docker.engines import describe
from sandbox.errors import BuildError

BASE = Path(__file__).parents[1] / "images" / "base"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
MAX_LINES = 15
_PRINTED = re.compile(r"#\d+ \d+\.\d+ ")


def build_base(
    *,
    base: str | None = None,
    packages: str = "small",
    on_line: Callable[[str], None] | None = None,
    program: str | None = None,
) -> str:
    """Build the base image; returns its name.

    Args:
        base: image with Python to build on; by default the official python-slim image.
        packages: small or full; the lists are next to the Dockerfile.
        on_line: called with every line that the build prints.
        program: see `build`.

    Raises:
        BuildError: the image cannot be built.
    """
    if program and base is None:
        base = "docker.io/library/python:3.12-slim"  # podman knows no registry by default
    if not (BASE / f"{packages}.txt").is_file():
        raise BuildError(f"no list of packages {packages!r}: choose small or full")
    arguments = {"PACKAGES": packages, **({"BASE": base} if base else {})}
    return build(BASE, BASE_IMAGE, arguments, on_line, program=program)


def build_agent(
    agent: Agent,
    arguments: Mapping[str, str] = {},
    on_line: Callable[[str], None] | None = None,
    *,
    trusted: bool = False,
    program: str | None = None,
) -> str:
    """Build an agent's image from the Dockerfile in its folder; returns the image's name.

    Args:
        agent: the agent.
        arguments: build arguments.
        on_line: called with every line that the build prints.
        trusted: whether its Dockerfile may use the network and the credentials of this machine's package index, even
            if the agent neither ships with the package nor is trusted.
        program: see `build`.

    Raises:
        BuildError: the agent has no Dockerfile, or the image cannot be built.
    """
    if not (agent.folder / DOCKERFILE).is_file():
        raise BuildError(f"agent {agent.name!r} has no {DOCKERFILE}: it runs in {agent.image_name}, nothing to build")
    list(agent.files())  # only regular files may become part of the image
    trusted = trusted or agent.trusted or agent.folder.parent == BUILTIN_AGENTS.resolve()
    if not trusted and program is None and (engine := describe(connect())).is_podman:
        raise BuildError(
            f"{engine} builds only images of agents that are trusted: a hostile {DOCKERFILE} could read files of this "
            "machine. Read it, and use --trusted if you would run that yourself, or build with Docker"
        )
    try:
        if not trusted:
            require_offline(agent.folder, DOCKERFILE, arguments, partial(_triggers, program))
        return build(agent.folder, agent.image_name, arguments, on_line, trusted=trusted, program=program)
    except BuildError as error:
        if trusted:
            raise
        raise BuildError(
            f"{error}; it is built without network and index credentials, because the agent is not trusted: read its "
            f"{DOCKERFILE}, and use --trusted if you would run that yourself"
        ) from None


def build(
    folder: Path,
    image: str,
    arguments: Mapping[str, str],
    on_line: Callable[[str], None] | None = None,
    dockerfile: Path | None = None,
    *,
    trusted: bool = True,
    program: str | None = None,
) -> str:
    """Build an image and return its name.

    Args:
        folder: the build context.
        image: name of the image.
        arguments: build arguments.
        on_line: called with every line that the build prints.
        dockerfile: by default the one in `folder`.
        trusted: whether its commands get the network, and proxies and index credentials of this machine.
        program: podman or buildah, to build the image with it instead of a Docker engine.

    Raises:
        BuildError: the image cannot be built.
    """
    engine = None if program else describe(connect())
    with tempfile.TemporaryDirectory(prefix="mlebench-build-") as temporary:
        command = _builder(program, trusted=trusted) if engine is None or not engine.is_podman else _podman()
        command += ["--tag", image, "--label", f"{PREFIX}folder={folder.name}"]
        for name, value in arguments.items():
            command += ["--build-arg", f"{name}={value}"]
        command += ["--file", str(dockerfile or folder / DOCKERFILE)]
        if not trusted:
            for name in (*PROXIES, *map(str.lower, PROXIES)):  # the client would add those of its configuration
                command += ["--build-arg", f"{name}="]
        proxies = {name: os.environ.get(name) or os.environ.get(name.lower()) or "" for name in PROXIES if trusted}
        socks = [name for name, proxy in proxies.items() if proxy.startswith("socks")]  # no installer can use those
        for name, proxy in proxies.items():
            if proxy and name not in socks:
                command += ["--build-arg", f"{name}={proxy}"]
        for name, path in (secrets(Path(temporary)) if trusted else {}).items():
            command += ["--secret", f"id={name},src={path}"]
        hint = "; builds cannot use a SOCKS proxy: set HTTP_PROXY and HTTPS_PROXY to an HTTP proxy" if socks else ""
        run([*command, str(folder)], f"image {image} could not be built", on_line, hint)
    return image


def run(command: Sequence[str], failed: str, on_line: Callable[[str], None] | None = None, hint: str = "") -> None:
    """Run a program that builds something, and show what it prints.

    Args:
        command: the program and its arguments.
        failed: beginning of the message if it fails, e.g. "image x could not be built".
        on_line: called with every line that it prints.
        hint: end of the message if it fails.

    Raises:
        BuildError: it fails.
    """
    process = subprocess.Popen(
        command,
        env={**os.environ, "DOCKER_BUILDKIT": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    last: deque[str] = deque(maxlen=MAX_LINES)
    assert process.stdout is not None
    with process:
        for line in process.stdout:
            last.append(line.rstrip())
            if on_line:
                on_line(line.rstrip())
    if process.returncode:
        raise BuildError(f"{failed}: {_reason(last)}{hint}")


@cache  # asking the installed clients for their versions takes a second
def client() -> str:
    """The first Docker client on the PATH that can build with BuildKit. Raises `BuildError` if none can."""
    paths = [path for folder in os.get_exec_path() if os.access(path := os.path.join(folder, "docker"), os.X_OK)]  # noqa: PTH118
    for path in paths:
        answer = subprocess.run([path, "version", "--format", "{{.Client.Version}}"], capture_output=True, check=False)
        major = answer.stdout.decode().partition(".")[0]
        if major.isdigit() and int(major) < 23:  # BuildKit is built in
            return path
        if subprocess.run([path, "buildx", "version"], capture_output=True, check=False).returncode == 0:
            return path
    lack = "needs the buildx plugin: install docker-buildx" if paths else "is not installed: install Docker"
    raise BuildError(f"the docker client {lack}")


def _podman() -> list[str]:
    """The command that builds images for a Podman engine. Raises `BuildError` if it is not installed."""
    if shutil.which("podman") is None:
        raise BuildError("the podman client is not installed: install Podman")
    url = ["--url", os.environ["DOCKER_HOST"]] if os.environ.get("DOCKER_HOST") else []
    return ["podman", *url, "build", "--format", "docker"]


def _builder(program: str | None, *, trusted: bool) -> list[str]:
    """The command that builds an image, and its options that depend on who wrote the Dockerfile."""
    if program is None:
        return [client(), "build", "--progress", "plain", *(() if trusted else ("--network", "none"))]
    # Podman and buildah ignore `--network none` in old versions, and with BUILDAH_ISOLATION=chroot. So they have no
    # network themselves. For an ordinary user, that takes the namespace in which they are root.
    isolated = [] if trusted else [*([program, "unshare"] if os.getuid() else []), "unshare", "--net"]
    # They would take steps from builds with network, pass on the proxies of this process, and do without namespaces.
    isolation = "rootless" if os.getuid() else "oci"
    options = [] if trusted else ["--no-cache", "--http-proxy=false", "--isolation", isolation]
    return [*isolated, program, "build", "--network", "host", *options]  # the host is what the build itself has


def _triggers(program: str | None, image: str) -> Sequence[str] | None:
    """The instructions that an image on this machine adds to a Dockerfile that builds on it; None without the image."""
    if program:
        command = [program, "inspect", "--type", "image", image]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        if answer.returncode:
            return None
        found = json.loads(answer.stdout)
        config = found[0].get("Config") if isinstance(found, list) else found["Docker"].get("config")
        return (config or {}).get("OnBuild") or ()
    found_image = look_up_image(connect(), image)
    return None if found_image is None else found_image.attrs["Config"].get("OnBuild") or ()


def secrets(folder: Path) -> dict[str, Path]:
    """The files of this machine's pip configuration and certificates, as far as they exist."""
    files = {}
    options = {
        name: value for name, value in _pip_options().items() if "file:" not in value and not value.startswith("/")
    }
    if options:
        config = configparser.RawConfigParser()
        config["global"] = options
        with (folder / "pip.conf").open("w") as file:
            config.write(file)
        files["pip.conf"] = folder / "pip.conf"
    certificates = next(
        (Path(path) for path in map(os.environ.get, ("PIP_CERT", "SSL_CERT_FILE")) if path), CERTIFICATES
    )
    if certificates.is_file():
        files["certificates"] = certificates
    return files


def _pip_options() -> dict[str, str]:
    """The pip options of this machine, from its configuration files and environment."""
    answer = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    )
    pairs = (line.partition("=") for line in answer.stdout.splitlines() if line.startswith(("global.", ":env:.")))
    return {name.rpartition(".")[2]: value.strip("'\"") for name, _, value in pairs}


def _reason(last: deque[str]) -> str:
    """The most informative line of the output."""
    lines = [line for line in last if line]
    printed = [line for line in lines if _PRINTED.match(line)]  # by the Dockerfile's commands, not the builder
    if lines and "building at STEP" in lines[-1]:  # podman, which says why before
        lines = [line for line in lines[:-1] if not line.startswith(("STEP ", ": exit status"))][-1:] or lines[-1:]
    candidates = [text for text in (*printed, *lines) if "error:" in text.lower() or text.startswith("E: ")] or lines
    line = candidates[0] if candidates else "it printed nothing"
    return line.split("ERROR: ", 1)[-1].strip()[:300] + " (--verbose shows all)"
