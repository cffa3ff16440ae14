"""The arguments of bubblewrap (``bwrap``) for a run.

    bwrap OPTIONS -- COMMAND

gives the command namespaces of its own: a root file system, processes, a network with a loopback interface only, and a
user without capabilities. It needs no rights of its own.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sandbox.confinement import loopback
from sandbox.confinement.world import HOME, Mount
from sandbox.errors import BackendError
from sandbox.isolation import UNPRIVILEGED
from sandbox.rootless.gpus import LIBRARIES, NONE, Gpus
from sandbox.rootless.namespaces import STAGE

_HIDDEN = (
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/key-users",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
)
"""As container engines do it."""
_SHOWN = ("/sys/devices/system/cpu", "/sys/devices/system/node")
"""From these, numerical libraries count the cores."""


def arguments(
    mounts: Sequence[Mount],
    env: Mapping[str, str],
    shm_bytes: int,
    is_folder: Callable[[str], bool | None],
    gpus: Gpus = NONE,
) -> list[str]:
    """The options for a run, without the descriptors that the supervisor passes on.

    Args:
        mounts: the root file system, and what is mounted in it, each after those that contain it.
        env: the agent's environment.
        shm_bytes: size of ``/dev/shm``.
        is_folder: whether a path of this machine is a folder; None if there is no such path.
        gpus: devices of the run, and the driver's files.

    Raises:
        BackendError: one has a NUL, at which bubblewrap would read the rest as options of its own.
    """
    user, root, binds = str(UNPRIVILEGED), _bind(mounts[0]), itertools.chain.from_iterable(map(_bind, mounts[1:]))
    options = [
        *("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
        *("--disable-userns", "--uid", user, "--gid", user, "--hostname", loopback.HOSTNAME),
        *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
        *root,
        *("--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"),  # some settings are those of a namespace's owner
        *itertools.chain.from_iterable(_hide(path, is_folder(path)) for path in _HIDDEN),
        *("--tmpfs", "/sys", *(part for path in _SHOWN if is_folder(path) for part in ("--ro-bind", path, path))),
        *("--remount-ro", "/sys", "--dev", "/dev"),
        *(part for device in gpus.devices for part in ("--dev-bind", str(device), str(device))),
        *("--perms", "1777", "--size", str(shm_bytes), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"),  # noqa: S108
        *_driver(gpus),
        *binds,
        *("--chdir", str(HOME), "--clearenv"),
        *itertools.chain.from_iterable(("--setenv", name, value) for name, value in env.items()),
    ]
    if bad := [option for option in options if "\0" in option]:
        raise BackendError(f"a variable or path of the run has a NUL character: {bad[0][:100]!r}; remove it")
    return options


def is_folder(path: str) -> bool | None:
    """Whether a path is a folder; None if it does not exist."""
    return os.path.isdir(path) if os.path.lexists(path) else None  # noqa: PTH112


def staged(mounts: Sequence[Mount]) -> list[Mount]:
    """The same mounts, with sources that the supervisor mounts at `STAGE` first, in this order."""
    return [replace(mount, source=Path(STAGE, str(number))) for number, mount in enumerate(mounts)]


def _bind(mount: Mount) -> tuple[str, str, str]:
    return "--ro-bind" if mount.read_only else "--bind", str(mount.source), str(mount.target)


def _driver(gpus: Gpus) -> Iterator[str]:
    if gpus.files:
        yield from ("--tmpfs", str(LIBRARIES.parent))
        for source, target in gpus.files:
            yield from ("--ro-bind", str(source), str(target))
        yield from ("--remount-ro", str(LIBRARIES.parent))


def _hide(path: str, folder: bool | None) -> Iterator[str]:
    if folder:
        yield from ("--tmpfs", path, "--remount-ro", path)
    elif folder is not None:
        yield from ("--ro-bind", "/dev/null", path)
