"""mlebench build."""

from __future__ import annotations

import click

from flows.commands.completion import AGENTS


@click.command("build")
@click.argument("agent", shell_complete=AGENTS)
@click.option("--base", metavar="IMAGE", help="Image to build the base image on. Default: python:3.12-slim.")
@click.option(
    "--packages",
    type=click.Choice(["small", "full"]),
    default="small",
    show_default=True,
    help="Packages of the base image: those that the included agents need, or also common machine learning packages.",
)
@click.option(
    "--build-arg", "arguments", multiple=True, metavar="NAME=VALUE", help="Build argument for the agent's Dockerfile."
)
@click.option(
    "--trusted",
    is_flag=True,
    help="Let the Dockerfile of an agent that is not trusted use network and pip credentials.",
)
@click.option(
    "--rootless",
    is_flag=True,
    help="Make the root file system for --backend rootless, with podman, buildah or docker, whichever is there first.",
)
@click.option(
    "--from",
    "source",
    metavar="SOURCE",
    help="With --rootless: take the root file system from docker://IMAGE of an engine of this machine, an archive of "
    "docker save or podman save, an OCI layout, an Apptainer image, a directory, or for the base image debootstrap.",
)
@click.option("--verbose", is_flag=True, help="Show the output of the build.")
def command(
    agent: str,
    base: str | None,
    packages: str,
    arguments: tuple[str, ...],
    trusted: bool,
    rootless: bool,
    source: str | None,
    verbose: bool,
) -> None:
    """Build the image of AGENT from the Dockerfile in its folder, or the base image if AGENT is `base`.

    The pip configuration of this machine is used for the build, but does not become part of the image. Agents that
    neither ship with the package nor are trusted are built without it and without network.
    """
    from common.settings import get_settings
    from sandbox.agent_registry import load_agent
    from sandbox.definitions import BASE_IMAGE
    from sandbox.docker.build import build_agent, build_base
    from sandbox.rootless import building

    build_arguments = dict(argument.partition("=")[::2] for argument in arguments)
    if "" in build_arguments or not all("=" in argument for argument in arguments):
        raise click.UsageError("--build-arg takes NAME=VALUE")
    if source is not None and not rootless:
        raise click.UsageError("--from needs --rootless: images of a container engine come from the Dockerfile")
    if source is not None and (base or arguments or trusted):
        raise click.UsageError("--from builds nothing from a Dockerfile: leave out --base, --build-arg and --trusted")

    def show(line: str) -> None:
        if verbose:
            click.echo(line, err=True)

    settings = get_settings()
    definition = None if agent == "base" else load_agent(agent, settings.agent_dirs)
    image = definition.image_name if definition else BASE_IMAGE
    if not rootless:
        if definition is None:
            image = build_base(base=base, packages=packages, on_line=show)
        else:
            image = build_agent(definition, build_arguments, on_line=show, trusted=trusted)
        click.echo(f"built {image}")
        return
    if source is not None:
        root = building.import_root(image, source, settings.scratch, show, packages)
    elif definition is None:
        root = building.build_base(settings.scratch, show, base=base, packages=packages)
    else:
        root = building.build_agent(definition, build_arguments, settings.scratch, show, trusted=trusted)
    click.echo(f"built {image} in {root.path}")
