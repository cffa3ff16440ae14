"""mlebench agents."""

from __future__ import annotations

import click


@click.command("agents")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the agents and their variants; with NAME (or NAME@VARIANT), show the definition of one."""
    from common.settings import get_settings
    from sandbox.definitions import list_agents, load_agent, variants_of
    from sandbox.errors import AgentError

    folders = get_settings().agent_dirs
    if name is None:
        for each in list_agents(folders):
            try:
                agent = load_agent(each, folders)
            except AgentError as error:  # no reason to hide the others
                click.echo(f"{each}  [broken]  {error}")
                continue
            trust = "trusted" if agent.trusted else "container only"
            click.echo(f"{each}  [{trust}{', privileged' if agent.privileged else ''}]  {agent.description}")
            if found := variants_of(agent):
                click.echo(f"  variants: {', '.join(f'{each}@{variant}' for variant in found)}")
        return
    agent = load_agent(name, folders)
    facts = {
        "agent": agent.full_name,
        "description": agent.description,
        "folder": agent.folder,
        "trusted": agent.trusted,
        "privileged": agent.privileged,
        "image": agent.image_name,
        "network": ", ".join([agent.network, *agent.hosts]),
        "arguments": " ".join(agent.arguments()) or "-",
        "environment": " ".join(f"{key}={value}" for key, value in agent.env.items()) or "-",
        "variants": ", ".join(variants_of(agent)) or "-",
        **agent.limits.as_dict(),
    }
    for label, value in facts.items():
        click.echo(f"{label:20} {'-' if value is None else value}")
