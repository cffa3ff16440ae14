"""mlebench agent new."""

from __future__ import annotations

import os
import re
from pathlib import Path

import click

import sandbox
from common.errors import UsageError, UserError
from flows.commands.options import create_folder
from sandbox.agent_registry import list_agents
from sandbox.definitions import IGNORED

TEMPLATE = Path(sandbox.__file__).parent / "template"
_NAME_PATTERN = r"[a-z0-9][a-z0-9._-]*"


@click.command("new")
@click.argument("name")
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Directory for the agent's folder. Default: the current one.",
)
def command(name: str, into: Path) -> None:
    """Create an agent of your own: a folder NAME with a small working agent for you to change."""
    from common.settings import get_settings

    if not re.fullmatch(_NAME_PATTERN, name):
        raise UsageError(
            f"{name!r} is no name for an agent: use lower-case letters, digits, dots, dashes, as in my-agent"
        )
    folder = into.expanduser().resolve() / name
    agent_dirs = get_settings().agent_dirs
    if name in list_agents(agent_dirs):
        raise UserError(f"agent {name!r} already exists; `mlebench agents {name}` shows it")
    if folder.exists():
        raise UserError(f"{folder} exists already; choose another name, or another directory with --into")
    create_folder(TEMPLATE, folder, IGNORED)
    definition = folder / "agent.yaml"
    definition.write_text(definition.read_text("utf-8").replace("my-agent", name), "utf-8")
    click.echo(f"Created {folder}. It works as it is; next:")
    if not any(agent_dir.expanduser().resolve() in (folder.parent, folder) for agent_dir in agent_dirs):
        click.echo(f"  export MLEBENCH_AGENT_DIRS={os.pathsep.join([*map(str, agent_dirs), str(folder.parent)])}")
    click.echo(f"  mlebench agent try {name}")
    click.echo("Then change start.sh and agent.yaml, and try it again.")
