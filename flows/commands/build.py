"""mlebench build."""

from __future__ import annotations

import click


@click.command("build")
@click.argument("agent")
@click.option("--base", metavar="IMAGE", help="What the base image is built on. Default: python:3.12-slim.")
@click.option(
    "--packages",
    type=click.Choice(["small", "full"]),
    default="small",
    show_default=True,
    help="What the base image holds: what the agents that ship need, or also what machine learning agents expect.",
)
@click.option("--build-arg", "arguments", multiple=True, metavar="NAME=VALUE", help="For the agent's Dockerfile.")
@click.option("--verbose", is_flag=True, help="Show what the build prints.")
def command(agent: str, base: str | None, packages: str, arguments: tuple[str, ...], verbose: bool) -> None:
    """Build the image of AGENT from the Dockerfile in its folder, or with `base` the image that agents build on.

    The builder's pip configuration is used, and does not become part of the image.
    """
    from common.settings import get_settings
    from sandbox.definitions import load_agent
    from sandbox.docker.build import build_agent, build_base

    pairs = dict(each.partition("=")[::2] for each in arguments)
    if "" in pairs or not all("=" in each for each in arguments):
        raise click.UsageError("--build-arg takes NAME=VALUE")

    def show(line: str) -> None:
        if verbose:
            click.echo(line, err=True)

    if agent == "base":
        image = build_base(base=base, packages=packages, on_line=show)
    else:
        image = build_agent(load_agent(agent, get_settings().agent_dirs), pairs, on_line=show)
    click.echo(f"built {image}")
