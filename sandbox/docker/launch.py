"""Starting a run: its world, its network, its forwarder, and last its container."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox.backend import RunSpec
from sandbox.docker import network, runs
from sandbox.docker.containers import HOME, options, user
from sandbox.docker.engine import in_words
from sandbox.supervision import control
from sandbox.world.layout import lay_out

if TYPE_CHECKING:
    from docker import DockerClient


def launch(
    client: DockerClient,
    spec: RunSpec,
    layout: control.Layout,
    *,
    image: Any,
    identity: str,
    policy: network.Policy,
    gpus: Sequence[str],
    runtime: str | None,
) -> None:
    """Lay out a run's world and start its network, forwarder and container.

    Args:
        client: the engine.
        spec: the run.
        layout: of its work directory, in which nothing is left of an earlier start.
        image: what to run, an image object.
        identity: what makes it the same run at the next start.
        policy: what it may reach.
        gpus: ids of devices for it alone.
        runtime: the engine's default if ``None``.

    Raises:
        BackendError: something cannot be made; what has been made stays, and is found by the run's label.
    """
    layout.control.mkdir()
    lay_out(spec, layout.home, HOME, with_data=False)
    _hand_over(layout.home)
    start = f"{HOME}/agent/{spec.agent.start}"
    script = (layout.home / "agent" / spec.agent.start).read_bytes()
    executable = os.access(layout.home / "agent" / spec.agent.start, os.X_OK) and script[:2] == b"#!"
    shell = [] if executable else ["sh" if script.startswith(b"#!/bin/sh") else "bash"]
    command = [*shell, start, *spec.agent.arguments()]
    labels = runs.labels_of(spec.run_id, layout.workdir, {**spec.labels, "agent": spec.agent.name, "network": policy})
    control.write(
        layout.task,
        # Without the environment: what secrets it holds are nobody's business on this disk.
        control.Task(spec.run_id, identity, str(image.id), command, {}, spec.limits.as_dict(), None),
    )
    name = runs.name_of(layout.workdir, spec.run_id)
    net = network.create(client, name, policy, labels)
    network.start_forwarder(
        client,
        net,
        image.id,
        "{}:{}".format(*user()),
        network.socket_folder(layout.workdir),
        labels,
    )
    with in_words(f"run {spec.run_id} cannot be started"):
        container = client.containers.create(
            name=name,
            **options(
                spec,
                image=image,
                home=layout.home,
                command=command,
                policy=policy,
                labels=labels,
                gpus=gpus,
                runtime=runtime,
            ),
        )
        client.networks.get("none").disconnect(container)
        net.connect(container)
        container.start()


def _hand_over(home: Path) -> None:
    """Make the agent's user the owner of its world, the mount points apart."""
    uid, gid = user()
    if os.getuid():
        return
    for path in [home, *home.rglob("*")]:
        if path.parent != home or path.name not in ("data", "instructions.txt", "validate_submission.sh"):
            os.chown(path, uid, gid, follow_symlinks=False)
