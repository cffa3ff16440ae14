"""mlebench build."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import click

from flows.commands.completion import AGENTS
from flows.commands.options import option, takes


@dataclass(frozen=True)
class DockerfileOptions:
    """How the image is built from a Dockerfile."""

    base: Annotated[
        str | None,
        option("--base", metavar="IMAGE", help="Image to build the base image on. Default: python:3.12-slim."),
    ] = None
    packages: Annotated[
        str,
        option(
            "--packages",
            type=click.Choice(["small", "full"]),
            show_default=True,
            help="Packages of the base image: those that the included agents need, or also common machine learning "
            "packages.",
        ),
    ] = "small"
    build_arg: Annotated[
        tuple[str, ...],
        option("--build-arg", multiple=True, metavar="NAME=VALUE", help="Build argument for the agent's Dockerfile."),
    ] = ()
    trusted: Annotated[
        bool,
        option(
            "--trusted",
            is_flag=True,
            help="Let the Dockerfile of an agent that is not trusted use network and pip credentials.",
        ),
    ] = False

    def arguments(self) -> dict[str, str]:
        """The build arguments. Raises `UsageError` if one is not understood."""
        arguments = dict(argument.partition("=")[::2] for argument in self.build_arg)
        if "" in arguments or not all("=" in argument for argument in self.build_arg):
            raise click.UsageError("--build-arg takes NAME=VALUE")
        return arguments


@click.command("build")
@click.argument("agent", shell_complete=AGENTS)
@takes(dockerfile=DockerfileOptions)
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
def command(agent: str, dockerfile: DockerfileOptions, rootless: bool, source: str | None, verbose: bool) -> None:
    """Build the image of AGENT from the Dockerfile in its folder, or the base image if AGENT is `base`.

    The pip configuration of this machine is used for the build, but does not become part of the image. Agents that
    neither ship with the package nor are trusted are built without it and without network.
    """
    from common.settings import get_settings
    from sandbox.agent_registry import load_agent, require_own_image
    from sandbox.definitions import BASE_IMAGE
    from sandbox.docker.build import build_agent, build_base
    from sandbox.rootless import building

    build_arguments = dockerfile.arguments()
    if source is not None and not rootless:
        raise click.UsageError("--from needs --rootless: images of a container engine come from the Dockerfile")
    if source is not None and (dockerfile.base or build_arguments or dockerfile.trusted):
        raise click.UsageError("--from builds nothing from a Dockerfile: leave out --base, --build-arg and --trusted")

    def show(line: str) -> None:
        if verbose or line.startswith("I: "):  # the steps of mmdebstrap, which take minutes
            click.echo(line, err=True)

    settings = get_settings()
    definition = None if agent == "base" else load_agent(agent, settings.agent_dirs)
    if definition is not None:
        require_own_image(definition, settings.agent_dirs)
    image = definition.image_name if definition else BASE_IMAGE
    if not rootless:
        if definition is None:
            image = build_base(base=dockerfile.base, packages=dockerfile.packages, on_line=show)
        else:
            image = build_agent(definition, build_arguments, on_line=show, trusted=dockerfile.trusted)
        click.echo(f"built {image}")
        return
    if source is not None:
        root = building.import_root(image, source, settings.scratch, show, dockerfile.packages)
    elif definition is None:
        root = building.build_base(settings.scratch, show, base=dockerfile.base, packages=dockerfile.packages)
    else:
        root = building.build_agent(definition, build_arguments, settings.scratch, show, trusted=dockerfile.trusted)
    if source is not None and image != BASE_IMAGE and building.is_base(root, settings.scratch):
        click.echo(f"warning: {source} is the base image; software that {agent} needs besides is missing", err=True)
    click.echo(f"built {image} in {root.path}")
