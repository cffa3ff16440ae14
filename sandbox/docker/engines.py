"""What container engines do differently: Docker and Podman, as root and without.

Podman answers Docker's interface (``DOCKER_HOST=unix:///run/podman/podman.sock``), but takes some options in another
way, ignores others without an error, and limits nothing where it has no control groups of its own.
"""

from __future__ import annotations

import hashlib
import os
import resource
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox.confinement import seccomp
from sandbox.docker.engine import engine_errors
from sandbox.errors import BackendError
from sandbox.host.folder import private
from sandbox.limits import Limits

if TYPE_CHECKING:
    from docker import DockerClient

_PODMAN = "Podman Engine"
_GPUS_SINCE = (5, 4)
"""Version of Podman that hands out devices by their CDI names. Earlier ones ignore requests for GPUs."""


@dataclass(frozen=True)
class Engine:
    """An engine, as far as runs depend on it."""

    name: str = "docker"
    """docker or podman."""
    version: str = ""
    rootless: bool = False
    """Whether it runs without root's rights, in a user namespace."""
    groups: str = "2"
    """Version of the control groups, 1 or 2; empty if it does not say."""
    manager: str = "systemd"
    """What makes control groups for it: systemd, cgroupfs or none."""
    options: tuple[str, ...] = ()
    """Its security options, such as ``name=userns``."""
    unlimited: tuple[str, ...] = ()
    """What it says that it cannot limit: MemoryLimit, PidsLimit."""

    def __str__(self) -> str:
        """Name and version, such as "podman 4.3.1 (rootless)"."""
        return f"{self.name} {self.version}" + (" (rootless)" if self.rootless else "")

    @property
    def is_podman(self) -> bool:
        """Whether it is Podman."""
        return self.name == "podman"

    def has(self, option: str) -> bool:
        """Whether it has a security option, such as selinux."""
        return any(f"name={option}" in each.split(",") for each in self.options)


def describe(client: DockerClient) -> Engine:
    """Ask the engine what it is. Raises `BackendError` if it does not answer."""
    with engine_errors("the engine's options cannot be read"):
        version, info = client.version(), client.info()
    options = tuple(info.get("SecurityOptions") or ())
    components = [each.get("Name") for each in version.get("Components") or ()]
    return Engine(
        name="podman" if _PODMAN in components else "docker",
        version=str(version["Version"]),
        rootless=bool(info.get("Rootless")) or "name=rootless" in options,
        groups=str(info.get("CgroupVersion") or ""),
        manager=str(info.get("CgroupDriver") or ""),
        options=options,
        unlimited=tuple(name for name in ("MemoryLimit", "PidsLimit") if info.get(name) is False),
    )


def check_limits(engine: Engine, limits: Limits) -> None:
    """Raise `BackendError` if the engine cannot enforce the limits of memory and processes.

    Podman says that it can whenever root could. Without root's rights, it needs control groups that systemd delegates,
    and ignores limits otherwise.
    """
    needed = {"MemoryLimit": limits.memory_bytes, "PidsLimit": limits.processes}
    missing = [name for name, limit in needed.items() if limit and name in engine.unlimited]
    if engine.rootless and (engine.groups, engine.manager) != ("2", "systemd") and any(needed.values()):
        missing = [f"rootless with cgroup v{engine.groups or '?'} by {engine.manager or 'nobody'}"]
    if missing:
        raise BackendError(
            f"{engine} cannot limit agents ({', '.join(missing)}): give it cgroup v2 with delegation of memory and "
            "pids by systemd, run it as root, or use another engine"
        )


def check_runtime(client: DockerClient, runtime: str | None) -> None:
    """Raise `BackendError` if the engine has no such runtime, or does not let a container choose one."""
    if runtime is None:
        return
    if (engine := describe(client)).is_podman:  # which accepts the option and ignores it
        raise BackendError(
            f"{engine} runs every container with its own runtime: set `runtime` in containers.conf, and leave out "
            f"--runtime {runtime}"
        )
    with engine_errors("the engine's runtimes cannot be listed"):
        runtimes = client.info().get("Runtimes", {})
    if runtime not in runtimes:
        names = ", ".join(sorted(name for name in runtimes if "." not in name))
        raise BackendError(
            f"the Docker engine has no runtime {runtime!r} (available: {names}): install it, see dockerd(8)"
        )


def check_gpus(engine: Engine, gpus: int | None) -> None:
    """Raise `BackendError` if the engine would start a container without the GPUs that it is asked for."""
    if gpus and engine.is_podman and _numbers(engine.version) < _GPUS_SINCE:
        wanted = ".".join(map(str, _GPUS_SINCE))
        raise BackendError(f"{engine} gives containers no GPUs by this interface: update it to {wanted}, or use Docker")


def gpu_requests(engine: Engine, gpus: tuple[str, ...]) -> list[Any] | None:
    """The option ``device_requests`` for these GPUs."""
    from docker.types import DeviceRequest

    if not gpus:
        return None
    if engine.is_podman:
        return [DeviceRequest(driver="cdi", device_ids=[f"nvidia.com/gpu={gpu}" for gpu in gpus])]
    return [DeviceRequest(device_ids=list(gpus), capabilities=[["gpu"]])]


def ulimits(engine: Engine, **limits: int) -> list[Any]:
    """The option ``ulimits`` of a container, with these limits of each process.

    Podman would allow each user a million processes, which root may not do without the capability CAP_SYS_RESOURCE.
    """
    from docker.types import Ulimit

    if engine.is_podman:
        limits = {"nproc": _most_processes(), **limits}
    return [Ulimit(name=name, soft=value, hard=value) for name, value in limits.items()]


def security_options(engine: Engine) -> list[str]:
    """The option ``security_opt`` of every container: no more rights than at its start, and our system calls only.

    Docker wants the profile itself, and Podman the path of a file with it. SELinux would keep containers from the
    folders of the operator that are mounted, as long as nobody gives all of their files other labels.
    """
    profile = seccomp.text() if not engine.is_podman else str(_profile_file())
    labels = ["label=disable"] if engine.has("selinux") else []
    return ["no-new-privileges:true", f"seccomp={profile}", *labels]


def _profile_file() -> Path:
    """The profile of system calls in a file that only this user can write to."""
    text = seccomp.text()
    name = f"seccomp-{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}.json"
    path = private(Path(tempfile.gettempdir())) / name
    if not path.exists():
        descriptor, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        Path(temporary).replace(path)
    return path


def _most_processes() -> int:
    """A number of processes that no user of this machine can reach, and that every engine on it may set as a limit."""
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    try:
        most = int(Path("/proc/sys/kernel/pid_max").read_text())
    except OSError:  # no Linux
        most = 1 << 15
    return most if hard == resource.RLIM_INFINITY else min(hard, most)


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version.

    >>> _numbers("5.4.0-rc1")
    (5, 4, 0)
    """
    return tuple(int(part) for part in version.partition("-")[0].split(".") if part.isdigit())
