"""What an agent does, and what it is told."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any


class EnvException(Exception):
    """An action failed; the text is for the agent."""


class EnhancedJSONEncoder(json.JSONEncoder):
    """Encodes what a trace consists of."""

    def default(self, o: Any) -> Any:
        """Dataclasses as objects, functions by their names."""
        if dataclasses.is_dataclass(o) and not isinstance(o, type):
            return dataclasses.asdict(o)
        return o.__name__ if callable(o) else super().default(o)


@dataclasses.dataclass(frozen=True)
class Action:
    """What an agent does."""

    name: str
    args: Any


@dataclasses.dataclass(frozen=True)
class ActionInfo:
    """An action that an agent may choose."""

    name: str
    usage: dict[str, str]
    function: Callable[..., str]


@dataclasses.dataclass(frozen=True)
class Step:
    """An action and its observation."""

    action: Action
    observation: str
    timestamp: float


@dataclasses.dataclass(frozen=True)
class Trace:
    """The steps so far."""

    steps: list[Step]
