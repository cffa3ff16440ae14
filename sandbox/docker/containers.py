"""The container of a run: image, user, mounts, limits and labels."""

from __future__ import annotations

import math
import os
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox.backend import RunSpec
from sandbox.confinement import world
from sandbox.confinement.loopback import HOSTNAME
from sandbox.confinement.world import HOME
from sandbox.docker import engines
from sandbox.docker.engine import AGENT, GPUS, ROLE, engine_errors
from sandbox.docker.engines import Engine
from sandbox.errors import BackendError
from sandbox.isolation import UNPRIVILEGED, Network
from sandbox.limits import GIB, MIB, Limits
from sandbox.supervision import openfiles

if TYPE_CHECKING:
    from docker import DockerClient

BACKSTOP_SECONDS = 30.0
"""A container ends itself this long after the time limit and the grace period, if no orchestrator has ended it."""
ENGINE_LOG_BYTES = 32 * MIB
"""Minimum size of each of the two files of the engine's own log. If a container writes output faster than this process
reads it, the log preserves the beginning."""


def user(engine: Engine) -> tuple[int, int]:
    """User and group id of the agent in its container, where it owns the files that this process gives it.

    Raises:
        BackendError: this process is root, and the engine that of another user, who does not get root's files.
    """
    if not os.getuid():
        if engine.rootless and _is_root_of_the_machine():
            raise BackendError(
                f"{engine} is the engine of another user, whose containers cannot use root's files: run mlebench as "
                "that user, or set DOCKER_HOST to an engine of root"
            )
        return UNPRIVILEGED, UNPRIVILEGED
    if engine.rootless:  # which maps this process' user to root, and everybody else to users without files
        return 0, 0
    return os.getuid(), os.getgid()


def _is_root_of_the_machine() -> bool:
    """Whether root here is root of the machine, and not that of a namespace of users."""
    try:
        return Path("/proc/self/uid_map").read_text().split() == ["0", "0", str(2**32 - 1)]
    except OSError:  # no Linux
        return True


def backstop_seconds(limits: Limits) -> int:
    """Seconds from the start of a container to its end if no orchestrator ends it."""
    return math.ceil(limits.time_limit_seconds + limits.grace_seconds + BACKSTOP_SECONDS)


def find_image(client: DockerClient, reference: str, built_by: str) -> Any:
    """Find an image. Raises `BackendError`, which says how to get the image, if there is none."""
    if image := look_up_image(client, reference):
        return image
    raise BackendError(f"image {reference} is missing: mlebench build {built_by} (or docker pull {reference})")


def look_up_image(client: DockerClient, reference: str) -> Any | None:
    """An image of the engine, or None."""
    from docker.errors import ImageNotFound, NotFound

    server, slash, _ = reference.partition("/")
    names = [reference]
    if not slash or not set(".:") & set(server):  # without a server: Podman calls what it builds localhost/...
        names.append(f"localhost/{reference}")
    for name in names:
        try:
            with engine_errors(f"image {reference} cannot be looked up"):
                return client.images.get(name)
        except BackendError as error:
            if not isinstance(error.__cause__, ImageNotFound | NotFound):
                raise
    return None


@dataclass(frozen=True)
class ContainerConfig:
    """The part of a container's configuration that comes from the operator's choices and the engine."""

    image: Any
    """The image to run, an image object."""
    engine: Engine
    policy: Network
    runtime: str | None = None
    """The engine's default if ``None``."""
    user: tuple[int, int] = (UNPRIVILEGED, UNPRIVILEGED)
    """User and group id of the agent, see `user`."""


def options(
    spec: RunSpec, config: ContainerConfig, *, home: Path, command: Sequence[str], labels: Mapping[str, str]
) -> dict[str, Any]:
    """Arguments for ``client.containers.create``, except for the name and the network.

    Args:
        spec: the run.
        config: image, network policy and runtime.
        home: the agent's home on this machine, owned by the agent's user.
        command: the command that starts the agent, in the container.
        labels: labels of the run.
    """
    from docker.types import LogConfig, Mount

    image, gpus, limits = config.image, spec.allocation.gpus, spec.limits
    uid, gid = config.user
    image_env = dict(item.partition("=")[::2] for item in image.attrs["Config"].get("Env") or [])
    mounts = [
        Mount(str(mount.target), str(mount.source), type="bind", read_only=mount.read_only)
        for mount in world.mounts(spec, home)
    ]
    mounts += _scratch_volumes(image, home, {mount["Target"] for mount in mounts})
    bounds = {"core": 0, "nofile": openfiles.limit(limits.processes, spec.allocation.slots)}
    if limits.disk_bytes:
        bounds["fsize"] = limits.disk_bytes
    shm = limits.shm_bytes or (limits.memory_bytes or 8 * GIB) // 2
    restrictions: dict[str, Any] = {
        "cap_drop": ["ALL"],
        "security_opt": engines.security_options(config.engine),
        "read_only": True,
        "user": f"{uid}:{gid}",
    }
    return {
        "image": image.id,
        "entrypoint": [
            "timeout",
            "-s",
            "TERM",
            "-k",
            f"{math.ceil(limits.grace_seconds) + 1}",
            f"{backstop_seconds(limits)}",
        ],
        "command": list(command),
        "environment": world.environment(spec, image_env, config.policy),
        "use_config_proxy": False,  # the client's configuration can name the operator's proxy with its password
        "labels": {**labels, ROLE: AGENT, GPUS: ",".join(gpus)},
        "mounts": mounts,
        "working_dir": str(HOME),
        "init": True,
        # With Docker, it is that of the forwarder, whose network it has.
        "hostname": HOSTNAME if config.engine.is_podman else None,
        "userns_mode": "host",  # so that the agent owns its files where the engine maps users to others (userns-remap)
        "ulimits": engines.ulimits(config.engine, **bounds),
        "shm_size": max(shm, MIB),
        "mem_limit": limits.memory_bytes,
        "memswap_limit": limits.memory_bytes,
        "nano_cpus": limits.cpus * 10**9 if limits.cpus else None,
        "pids_limit": limits.processes,
        "device_requests": engines.gpu_requests(config.engine, gpus),
        "runtime": config.runtime,
        "log_config": LogConfig(
            type="json-file", config={"max-size": str(max(limits.log_bytes * 2, ENGINE_LOG_BYTES)), "max-file": "2"}
        ),
        **({"privileged": True} if spec.agent.privileged else restrictions),
    }


def _scratch_volumes(image: Any, home: Path, mounted: set[str]) -> list[Any]:
    """Mounts for the volumes that an image declares. The engine would create them outside of the disk limit."""
    from docker.types import Mount

    paths = {posixpath.normpath(path) for path in image.attrs["Config"].get("Volumes") or ()}
    return [Mount(path, str(home / "tmp"), type="bind") for path in sorted(paths - mounted)]
