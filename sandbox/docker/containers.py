"""The container of one run: image, user, mounts, limits and labels."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from sandbox.backend import RunSpec
from sandbox.docker.engine import AGENT, GPUS, ROLE, in_words
from sandbox.docker.network import ALIAS, NOWHERE, PROXY_PORT, Policy
from sandbox.errors import BackendError
from sandbox.limits import GIB, MIB
from sandbox.world.layout import DESCRIPTION, descriptions, environment

if TYPE_CHECKING:
    from docker import DockerClient

HOME = PurePosixPath("/home")
UNPRIVILEGED = 1000
"""User of the agent where the orchestrator is root; otherwise the orchestrator's own, which collects the files."""
BACKSTOP_SECONDS = 30.0
"""After the limit and the grace period the container ends itself, in case no orchestrator is there to do it."""
ENGINE_LOG_BYTES = 32 * MIB
"""The engine's own log of a container has at least two files of this size: from it comes what a flood of output begins
with, which is written before anybody can read."""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def user() -> tuple[int, int]:
    """User and group id of the agent."""
    return (os.getuid(), os.getgid()) if os.getuid() else (UNPRIVILEGED, UNPRIVILEGED)


def find_image(client: DockerClient, reference: str, agent: str) -> Any:
    """An image that is there. Raises `BackendError` saying how to get it."""
    from docker.errors import ImageNotFound, NotFound

    try:
        with in_words(f"image {reference} cannot be looked up"):
            return client.images.get(reference)
    except BackendError as error:
        if isinstance(error.__cause__, ImageNotFound | NotFound):
            raise BackendError(
                f"image {reference} of agent {agent!r} is missing: mlebench build {agent} (or docker pull {reference})"
            ) from None
        raise


def check_runtime(client: DockerClient, runtime: str | None) -> None:
    """Raise `BackendError` if the engine has no such runtime."""
    if runtime is None:
        return
    with in_words("the engine's runtimes cannot be listed"):
        known = client.info().get("Runtimes", {})
    if runtime not in known:
        names = ", ".join(sorted(name for name in known if "." not in name))
        raise BackendError(
            f"the Docker engine knows no runtime {runtime!r} (it has {names}): install it, see dockerd(8)"
        )


def options(
    spec: RunSpec,
    *,
    image: Any,
    home: Path,
    command: Sequence[str],
    policy: Policy,
    labels: Mapping[str, str],
    gpus: Sequence[str],
    runtime: str | None,
) -> dict[str, Any]:
    """Arguments for ``client.containers.create``; its network is connected afterwards.

    Args:
        spec: the run.
        image: what to run, an image object.
        home: the agent's world on this machine; its own user's.
        command: starts the agent, in the container.
        policy: what it may reach.
        labels: of the run.
        gpus: ids of devices for it alone.
        runtime: the engine's default if ``None``.
    """
    from docker.types import DeviceRequest, LogConfig, Mount, Ulimit

    limits = spec.limits
    uid, gid = user()
    ours = dict(item.partition("=")[::2] for item in image.attrs["Config"].get("Env") or [])
    env = environment(
        spec,
        HOME,
        python=ours.get("MLEBENCH_PYTHON", "python3"),
        path=ours.get("PATH", PATH),
        threads=limits.cpus or os.cpu_count() or 1,
    )
    if policy == "allowlist":
        proxy = f"http://{ALIAS}:{PROXY_PORT}"
        env |= dict.fromkeys(("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"), proxy)
        env |= dict.fromkeys(("NO_PROXY", "no_proxy"), f"{ALIAS},localhost,127.0.0.1")
    backstop = math.ceil(limits.time_limit_seconds + limits.grace_seconds + BACKSTOP_SECONDS)
    mounts = [
        Mount(str(HOME), str(home), type="bind"),
        Mount(str(HOME / "data"), str(spec.data.resolve()), type="bind", read_only=True),
        *(Mount(path, str(home / "tmp"), type="bind") for path in ("/tmp", "/var/tmp")),  # noqa: S108
    ]
    mounts += [
        Mount(str(HOME / name), str(home / name), type="bind", read_only=True)
        for name in ("instructions.txt", "validate_submission.sh")
        if (home / name).exists()
    ]
    if spec.description is not None:
        mounts += [
            Mount(str(HOME / "data" / name), str(home / DESCRIPTION), type="bind", read_only=True)
            for name in descriptions(spec.data)
        ]
    ulimits = [Ulimit(name="core", soft=0, hard=0)]
    if limits.disk_bytes:
        ulimits.append(Ulimit(name="fsize", soft=limits.disk_bytes, hard=limits.disk_bytes))
    shm = limits.shm_bytes or (limits.memory_bytes or 8 * GIB) // 2
    shut: dict[str, Any] = {
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "read_only": True,
        "user": f"{uid}:{gid}",
        "sysctls": {"net.ipv6.conf.all.disable_ipv6": "1"},
    }
    return {
        "image": image.id,
        "entrypoint": ["timeout", "-s", "TERM", "-k", f"{math.ceil(limits.grace_seconds) + 1}", f"{backstop}"],
        "command": list(command),
        "environment": env,
        "labels": {**labels, ROLE: AGENT, GPUS: ",".join(gpus)},
        "mounts": mounts,
        "network_mode": "none",
        "dns": None if policy == "open" else [NOWHERE],
        "working_dir": str(HOME),
        "init": True,
        "ulimits": ulimits,
        "shm_size": max(shm, MIB),
        "mem_limit": limits.memory_bytes,
        "memswap_limit": limits.memory_bytes,
        "nano_cpus": limits.cpus * 10**9 if limits.cpus else None,
        "pids_limit": limits.processes,
        "device_requests": [DeviceRequest(device_ids=list(gpus), capabilities=[["gpu"]])] if gpus else None,
        "runtime": runtime,
        "log_config": LogConfig(
            type="json-file", config={"max-size": str(max(limits.log_bytes * 2, ENGINE_LOG_BYTES)), "max-file": "2"}
        ),
        **({"privileged": True} if spec.agent.privileged else shut),
    }
