"""mlebench agents."""

from __future__ import annotations

from typing import Any

import click

from common.units import elapsed, size
from flows.commands.answers import answer, takes_json
from flows.commands.completion import AGENTS
from flows.commands.tables import show_table


@click.command("agents")
@click.argument("name", required=False, shell_complete=AGENTS)
@takes_json
def command(name: str | None) -> None:
    """List the agents and their variants; with NAME (or NAME@VARIANT), show the definition of one."""
    from common.settings import get_settings
    from sandbox.agent_registry import list_agents, load_agent, variants_of
    from sandbox.errors import AgentError

    folders = get_settings().agent_dirs
    if name is None:
        rows: list[tuple[str, ...]] = []
        for agent_name in list_agents(folders):
            try:
                agent = load_agent(agent_name, folders)
            except AgentError as error:  # the others are listed nevertheless
                if not answer({"agent": agent_name, "broken": str(error)}):
                    rows.append((agent_name, "broken", "-", str(error)))
                continue
            variants = [f"{agent_name}@{variant}" for variant in variants_of(agent)]
            properties = {"trusted": agent.trusted, "privileged": agent.privileged, "description": agent.description}
            if not answer({"agent": agent_name, **properties, "variants": variants}):
                trust = "trusted" if agent.trusted else "container only"
                trust += ", privileged" if agent.privileged else ""
                names = ", ".join(variant.removeprefix(agent_name) for variant in variants)
                rows.append((agent_name, trust, names or "-", agent.description))
        if rows:
            show_table(("AGENT", "TRUST", "VARIANTS", "DESCRIPTION"), rows)
        return
    agent = load_agent(name, folders)
    facts: dict[str, Any] = {
        "agent": agent.full_name,
        "description": agent.description,
        "folder": agent.folder,
        "trusted": agent.trusted,
        "privileged": agent.privileged,
        "image": agent.image_name,
        "network": [agent.network, *agent.hosts],
        "arguments": agent.arguments(),
        "environment": agent.env,
        "resume": agent.resume,
        "checkpoint_every": agent.checkpoint_every_seconds,
        "variants": variants_of(agent),
        **agent.limits.as_dict(),
    }
    if answer(facts):
        return
    facts |= {
        "network": ", ".join(facts["network"]),
        "arguments": " ".join(facts["arguments"]) or "-",
        "environment": " ".join(f"{key}={value}" for key, value in agent.env.items()) or "-",
        "variants": ", ".join(facts["variants"]) or "-",
        "resume": "no" if agent.resume is None else ", ".join(agent.resume) or "yes",
    }
    for label, value in facts.items():
        name, _, unit = label.rpartition("_")
        words = {"bytes": size, "seconds": elapsed}.get(unit) if value is not None else None
        shown = "-" if value is None else words(value) if words else value
        click.echo(f"{name if words else label:20} {shown}")
