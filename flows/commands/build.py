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
@click.option("--verbose", is_flag=True, help="Show the output of the build.")
def command(
    agent: str, base: str | None, packages: str, arguments: tuple[str, ...], trusted: bool, verbose: bool
) -> None:
    """Build the image of AGENT from the Dockerfile in its folder, or the base image if AGENT is `base`.

    The pip configuration of this machine is used for the build, but does not become part of the image. Agents that
    neither ship with the package nor are trusted are built without it and without network.
    """
    from common.settings import get_settings
    from sandbox.agent_registry import load_agent
    from sandbox.docker.build import build_agent, build_base

    build_arguments = dict(argument.partition("=")[::2] for argument in arguments)
    if "" in build_arguments or not all("=" in argument for argument in arguments):
        raise click.UsageError("--build-arg takes NAME=VALUE")

    def show(line: str) -> None:
        if verbose:
            click.echo(line, err=True)

    if agent == "base":
        image = build_base(base=base, packages=packages, on_line=show)
    else:
        image = build_agent(
            load_agent(agent, get_settings().agent_dirs), build_arguments, on_line=show, trusted=trusted
        )
    click.echo(f"built {image}")
