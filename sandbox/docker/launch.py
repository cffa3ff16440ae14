"""Launch a run: the agent's home, the forwarder, the backstop, and finally the container."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox.backend import RunSpec
from sandbox.definitions import BASE_IMAGE, GIVEN, SCRIPTS
from sandbox.docker import backstop, network, runs
from sandbox.docker.containers import HOME, ContainerConfig, backstop_seconds, find_image, options
from sandbox.docker.engine import engine_errors, parse_time
from sandbox.errors import BackendError
from sandbox.host.folder import socket_folder
from sandbox.scripts import interpreter
from sandbox.supervision import control
from sandbox.world.files import copy_data, entries
from sandbox.world.layout import DESCRIPTION, lay_out, replace_descriptions

if TYPE_CHECKING:
    from docker import DockerClient


_MOUNTED = ("data", *GIVEN)


def launch(client: DockerClient, spec: RunSpec, layout: control.Layout, identity: str, config: ContainerConfig) -> None:
    """Lay out the agent's home and start the run's forwarder, backstop and container.

    Args:
        client: the engine.
        spec: the run.
        layout: the run's work directory, without the files of an earlier start.
        identity: hash by which the next start recognizes the run.
        config: image, network policy and runtime.

    Raises:
        BackendError: something cannot be created. The objects created before remain and have the run's labels.
    """
    layout.control.mkdir()
    lay_out(spec, layout.home, HOME, with_data=False)
    _change_owner(layout.home, config.user)
    data = _obfuscated_data(spec, layout) if spec.obfuscated else spec.data
    _make_readable(data)
    script = layout.home / "agent" / spec.agent.start
    shell = "sh" if script.read_bytes().startswith(b"#!/bin/sh") else "bash"
    command = [*interpreter(script, shell), f"{HOME}/agent/{spec.agent.start}", *spec.agent.arguments()]
    names = {**spec.labels, "agent": spec.agent.name, "network": config.policy}
    labels = runs.labels_of(spec.run_id, layout.workdir, names)
    control.write(
        layout.task,
        # The environment is left out, so that secrets in it are not written to disk.
        control.LaunchSpec(spec.run_id, identity, str(config.image.id), command, {}, spec.limits.as_dict(), None),
    )
    base_image = find_image(client, BASE_IMAGE, "base").id  # not the agent's image, in which any program can differ
    name = runs.name_of(layout.workdir, "run" if spec.obfuscated else spec.run_id)
    sockets = socket_folder(layout.workdir)
    forwarder = network.start_forwarder(client, name, base_image, "{}:{}".format(*config.user), sockets, labels)
    with engine_errors(f"run {spec.run_id} cannot be started"):
        container = client.containers.create(
            name=name,
            network_mode=f"container:{forwarder.id}",
            **options(replace(spec, data=data), config, home=layout.home, command=command, labels=labels),
        )
    if not spec.agent.privileged:  # a privileged agent could end it
        backstop.start(client, container, base_image, backstop_seconds(spec.limits), labels)
    with engine_errors(f"run {spec.run_id} cannot be started"):
        container.start()
        container.reload()
    control.write(layout.started, control.Started(parse_time(container.attrs["State"]["StartedAt"]).isoformat()))


def _obfuscated_data(spec: RunSpec, layout: control.Layout) -> Path:
    """Data for a run that does not know its competition: the list of mounts shows the agent the path of its data.

    They share their bytes with the originals where the file system allows it. The mount is read-only.
    """
    target = layout.data
    copy_data(spec.data, target, may_link=True, always_link=True)
    if spec.description is not None:
        replace_descriptions(spec, spec.description, target)
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
