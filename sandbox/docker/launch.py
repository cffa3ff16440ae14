"""Launch a run: the agent's home, the forwarder, the backstop, and finally the container."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sandbox.backend import RunSpec
from sandbox.confinement import world
from sandbox.definitions import BASE_IMAGE
from sandbox.docker import backstop, network, runs
from sandbox.docker.containers import ContainerConfig, backstop_seconds, find_image, options
from sandbox.docker.engine import engine_errors, out_of_memory_kills, parse_time
from sandbox.host.folder import socket_folder
from sandbox.supervision import control

if TYPE_CHECKING:
    from docker import DockerClient


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
    spec = replace(spec, data=world.lay_out(spec, layout, config.user))
    command = world.start_command(spec, layout.home)
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
    forwarder = network.start_forwarder(
        client, config.engine, name, base_image, "{}:{}".format(*config.user), sockets, labels
    )
    with engine_errors(f"run {spec.run_id} cannot be started"):
        container = client.containers.create(
            name=name,
            network_mode=f"container:{forwarder.id}",
            **options(spec, config, home=layout.home, command=command, labels=labels),
        )
    if not spec.agent.privileged:  # a privileged agent could end it
        backstop.start(client, config.engine, container, base_image, backstop_seconds(spec.limits), labels)
    kills = out_of_memory_kills()
    with engine_errors(f"run {spec.run_id} cannot be started"):
        container.start()
        container.reload()
    control.write(layout.started, control.Started(parse_time(container.attrs["State"]["StartedAt"]).isoformat(), kills))
