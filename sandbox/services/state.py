"""The state of a run's services that survives a restart of their process: token, ports, and from when usage counts."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path

from common import plain_json

FILE = "services.json"


@dataclass(frozen=True)
class ServiceState:
    """The persistent state of a run's services."""

    token: str = field(default_factory=lambda: f"sk-run-{secrets.token_urlsafe(24)}")
    """The agent's API key for the gateway."""
    since: str = ""
    """ISO time from which on requests count towards the limits."""
    ports: dict[str, int] = field(default_factory=dict)
    """Port of each service, by its name."""

    def write(self, folder: Path) -> None:
        """Write the state to its file atomically, readable by this user only."""
        draft = folder / f"{FILE}.new"
        draft.touch(mode=0o600)
        draft.write_text(plain_json.dumps(asdict(self)))
        draft.replace(folder / FILE)


def read_state(folder: Path) -> ServiceState:
    """The state in a run's folder; a new one if there is none."""
    try:
        return ServiceState(**json.loads((folder / FILE).read_text()))
    except (OSError, ValueError, TypeError):
        return ServiceState()
