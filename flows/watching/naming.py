"""Names of flow runs in the Prefect UI: agent, split and group, in whichever form they were given."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prefect import runtime

from common.errors import UserError
from common.settings import get_settings
from common.units import counted
from competitions import registry
from competitions.errors import UnknownCompetition
from sandbox.agent_registry import load_agent
from tasks.wiring.requests import RunRequest


def parameters() -> dict[str, Any]:
    """The parameters of the flow run that is being named."""
    return dict(runtime.flow_run.parameters)


def request_name() -> str:
    """The name of a flow run with the parameters `competition_ids` and `request`."""
    given = parameters()
    # Prefect names a flow run before it validates the parameters.
    request = RunRequest.model_validate(given["request"])
    return f"{agent_name(request.agent)} on {selection_name(given['competition_ids'])}, group {request.run_group}"


def agent_name(agent: str) -> str:
    """The agent's name, or the last part of its path if it cannot be loaded, which the flow run reports itself.

    >>> agent_name("no/such/folder")
    'folder'
    """
    try:
        return load_agent(agent, get_settings().agent_dirs).full_name
    except UserError:
        return Path(agent).name


def selection_name(competition_ids: Sequence[str]) -> str:
    """The name of the split with exactly these competitions; otherwise the one competition, or their number.

    >>> selection_name(["digits"]), selection_name(["diabetes", "digits"])
    ('digits', '2 competitions')
    >>> selection_name(["breast-cancer", "diabetes", "digits"])
    'demo'
    """
    ids = sorted(set(competition_ids))
    if len(ids) == 1:
        return ids[0]
    for split in registry.split_names():
        with contextlib.suppress(UnknownCompetition):  # in a split of one's own, which is not this one then
            if registry.list(split) == ids:
                return split
    return counted(len(ids), "competition")


def chosen_name() -> str:
    """As `selection_name`, for the parameters of a deployment: a split, or competitions instead of it."""
    given = parameters()
    return selection_name(given["competition_ids"]) if given.get("competition_ids") else str(given["split"])
