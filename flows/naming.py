"""Names of flow runs, which are what the Prefect UI lists: agent, split and group, whatever they were called with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prefect import runtime

from common.errors import UserError
from common.settings import get_settings
from competitions import registry
from sandbox.definitions import load_agent


def parameters() -> dict[str, Any]:
    """The parameters of the flow run that is being named."""
    return dict(runtime.flow_run.parameters)


def run_name() -> str:
    """Of a flow with the parameters agent, competition_ids and run_group."""
    given = parameters()
    chosen = selection_name(given["competition_ids"])
    return f"{agent_name(given['agent'])} on {chosen}, group {given['run_group']}"


def agent_name(agent: str) -> str:
    """The agent's name; of one that cannot be loaded, which the flow run will say, the last part of what was given.

    >>> agent_name("no/such/folder")
    'folder'
    """
    try:
        return load_agent(agent, get_settings().agent_dirs).full_name
    except UserError:
        return Path(agent).name


def selection_name(competition_ids: Sequence[str]) -> str:
    """The split that these are, the one competition, or how many they are.

    >>> selection_name(["digits"]), selection_name(["diabetes", "digits"])
    ('digits', '2 competitions')
    >>> selection_name(["breast-cancer", "diabetes", "digits"])
    'demo'
    """
    chosen = sorted(set(competition_ids))
    if len(chosen) == 1:
        return chosen[0]
    splits = (split for split in registry.SPLITS if registry.list(split) == chosen)
    return next(splits, f"{len(chosen)} competitions")


def chosen_name() -> str:
    """As `selection_name`, of a deployment's parameters: a split, or competitions instead of it."""
    chosen = parameters()
    return selection_name(chosen["competition_ids"]) if chosen.get("competition_ids") else str(chosen["split"])
