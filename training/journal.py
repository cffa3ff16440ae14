"""The journal of episodes: a trajectory in ATIF for each, and a row in `tables/episodes`."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sandbox.trajectory.atif import VERSION
from storage.store import Store
from storage.tables import write_table
from training.actions import Action, Observation

_ROWS = 100
"""Rows of a file of the table. It is written again for each of them."""
_TEXT_CHARACTERS = 20_000


class Trajectory:
    """The actions of an episode and what the agent was told, as steps of ATIF."""

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []

    def begun(self, observation: Observation) -> None:
        """Add what the agent was told first."""
        texts = (observation.description, observation.instructions)
        self.steps.append(self._step("system", "\n\n".join(_shortened(text) for text in texts if text)))

    def add(self, action: Action, observation: Observation, reward: float) -> None:
        """Add an action."""
        call = f"call-{len(self.steps)}"
        given = action.model_dump(exclude_defaults=True, exclude={"metadata"})  # which can have any size
        arguments = {name: _shortened(value) for name, value in given.items()}
        told = {name: _shortened(value) for name, value in observation.model_dump(exclude_defaults=True).items()}
        step = self._step("agent", "")
        step["tool_calls"] = [{"tool_call_id": call, "function_name": arguments.pop("type"), "arguments": arguments}]
        step["observation"] = {"results": [{"source_call_id": call, "content": told.pop("message")}]}
        step["extra"] = {**told, "reward": reward}
        self.steps.append(step)

    def _step(self, source: str, message: str) -> dict[str, Any]:
        now = datetime.now(UTC).isoformat()
        return {"step_id": len(self.steps) + 1, "timestamp": now, "source": source, "message": message}

    def as_json(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The trajectory of the episode with this row of the table, as a JSON object."""
        known = {name: value for name, value in row.items() if value is not None}
        return {
            "schema_version": VERSION,
            "session_id": str(row["episode_id"]),
            "agent": {"name": "episode", "version": "1"},
            "steps": self.steps,
            "final_metrics": {"total_steps": len(self.steps), "extra": known},
        }


class Journal:
    """Writes the records of the episodes of one process into a store."""

    def __init__(self, store: Store, group: str, writer: str) -> None:
        """Write into the partition `group` of the table; `writer` names the files of this process."""
        self._store, self._group, self._writer = store, group, writer
        self._rows: list[dict[str, Any]] = []
        self._number = 0
        self._mutex = threading.Lock()

    def record(self, row: dict[str, Any], trajectory: Trajectory) -> None:
        """Store the record of an episode that has ended.

        Raises `StoreError` if it cannot be written. The row is then written with the next one.
        """
        with self._mutex:
            if len(self._rows) == _ROWS:
                self._rows, self._number = [], self._number + 1
            self._rows.append(row)
            part = f"{self._writer}-{self._number:06}"
            write_table(self._store, "episodes", self._group, self._rows, part)
        self._store.write_json(self._trajectory_url(str(row["episode_id"])), trajectory.as_json(row))

    def has(self, episode_id: str) -> bool:
        """Whether an episode of that id is recorded, also by another server."""
        return self._store.exists(self._trajectory_url(episode_id))

    def _trajectory_url(self, episode_id: str) -> str:
        return self._store.url("episodes", self._group, f"{episode_id}.json")


def _shortened(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _TEXT_CHARACTERS:
        return f"{value[:_TEXT_CHARACTERS]}[... {len(value) - _TEXT_CHARACTERS:,} characters left out ...]"
    return value
