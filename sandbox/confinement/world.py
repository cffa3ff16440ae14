"""What an isolated agent finds: its home at ``/home``, the data mounted there, its environment and its command."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from sandbox.backend import RunSpec
from sandbox.confinement.loopback import NAMES, proxy_variables
from sandbox.definitions import GIVEN, SCRIPTS
from sandbox.errors import BackendError
from sandbox.isolation import Network
from sandbox.scripts import interpreter
from sandbox.supervision import control
from sandbox.world import layout as world
from sandbox.world.files import copy_data, entries
from sandbox.world.layout import DESCRIPTION, descriptions

HOME = PurePosixPath("/home")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MOUNTED = ("data", *GIVEN)


@dataclass(frozen=True)
class Mount:
    """A file or folder of this machine that the agent finds at a path."""

    target: PurePosixPath
    source: Path
    read_only: bool = False


def lay_out(spec: RunSpec, layout: control.Layout, user: tuple[int, int]) -> Path:
    """Create the agent's home without the data; returns the folder of the data, which the agent's user can read.

    Args:
        spec: the run.
        layout: the run's work directory.
        user: user and group id that own the home, if this process may give files away.

    Raises:
        BackendError: see `sandbox.world.layout.lay_out`; or the agent's user cannot read the data.
    """
    for name, text in NAMES.items():
        (layout.control / name).write_text(text, encoding="ascii")
        (layout.control / name).chmod(0o644)
    world.lay_out(spec, layout.home, HOME, with_data=False)
    _change_owner(layout.home, user)
    data = _obfuscated_data(spec, layout) if spec.obfuscated else spec.data
    _make_readable(data)
    return data


def mounts(spec: RunSpec, home: Path) -> list[Mount]:
    """The mounts of a run, each after those that contain it."""
    return [
        *(
            Mount(PurePosixPath("/etc", name), control.Layout(home.parent).control / name, read_only=True)
            for name in NAMES
        ),
        Mount(HOME, home),
        Mount(HOME / "data", spec.data.resolve(), read_only=True),
        *(Mount(PurePosixPath(path), home / "tmp") for path in ("/tmp", "/var/tmp")),  # noqa: S108
        *(Mount(HOME / name, home / name, read_only=True) for name in GIVEN if (home / name).exists()),
        *(
            Mount(HOME / "data" / name, home / DESCRIPTION, read_only=True)
            for name in descriptions(spec)
            if spec.description is not None and not spec.obfuscated
        ),
    ]


def environment(spec: RunSpec, image: Mapping[str, str], policy: Network) -> dict[str, str]:
    """The agent's environment, without the variables of its image, which are in `image`."""
    env = world.environment(
        spec,
        HOME,
        python=image.get("MLEBENCH_PYTHON", "python3"),
        path=image.get("PATH", PATH),
        threads=spec.limits.cpus or os.cpu_count() or 1,
    )
    env |= proxy_variables(policy)
    return env | _other_devices(image, env)


def start_command(spec: RunSpec, home: Path) -> list[str]:
    """The command that starts the agent, there."""
    script = home / "agent" / spec.agent.start
    shell = "sh" if script.read_bytes().startswith(b"#!/bin/sh") else "bash"
    return [*interpreter(script, shell), f"{HOME}/agent/{spec.agent.start}", *spec.agent.arguments()]


def _other_devices(image: Mapping[str, str], env: Mapping[str, str]) -> dict[str, str]:
    """The other variables by which a container with NVIDIA's runtime can get devices, without a value."""
    kept_names = ("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES")
    return {name: "" for name in (*image, *env) if name.startswith("NVIDIA_") and name not in kept_names}


def _obfuscated_data(spec: RunSpec, layout: control.Layout) -> Path:
    """Data for a run that does not know its competition: the list of mounts shows the agent the path of its data.

    They share their bytes with the originals where the file system allows it. The mount is read-only.
    """
    target = layout.data
    copy_data(spec.data, target, may_link=True, always_link=True)
    if spec.description is not None:
        world.replace_descriptions(spec, spec.description, target)
    return target


def _change_owner(home: Path, user: tuple[int, int]) -> None:
    """Make the agent's user the owner of its home, except for the mount points, which it can only read."""
    uid, gid = user
    if os.getuid():
        return
    for path in [home, *home.rglob("*")]:
        if path.parent != home or path.name not in (*_MOUNTED, DESCRIPTION):
            os.chown(path, uid, gid, follow_symlinks=False)
        else:
            path.chmod(0o755 if path.name in ("data", *SCRIPTS) else 0o644)


def _make_readable(data: Path) -> None:
    """Let the agent's user read the data, which root may have prepared with a umask such as 077.

    The folders above the data keep their permissions, so that other users of this machine cannot reach them.
    """
    if os.getuid():
        return
    try:
        _add_mode(data, 0o055 if data.is_dir() else 0o044)
        for entry in entries(data):
            if not entry.is_symlink():
                _add_mode(Path(entry.path), 0o055 if entry.is_dir() else 0o044)
    except OSError as error:
        raise BackendError(f"agents cannot read {error.filename}: chmod -R a+rX {data}") from error


def _add_mode(path: Path, bits: int) -> None:
    mode = path.stat().st_mode
    if mode & bits != bits:
        path.chmod(stat.S_IMODE(mode) | bits)
