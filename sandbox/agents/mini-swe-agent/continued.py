"""mini-swe-agent's own agent, which goes on with the trajectory in its output file. It has no option for that."""

import json
from pathlib import Path
from typing import Any

from minisweagent.agents.interactive import InteractiveAgent


class ContinuedAgent(InteractiveAgent):
    """Replaces system prompt and task by the earlier messages, followed by the task, which is then the next message."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._path = Path(self.config.output_path)
        self._earlier: list[dict[str, Any]] = []
        if self._path.is_file():
            messages = json.loads(self._path.read_text())["messages"]
            self._earlier = [each for each in messages if each["role"] != "exit"]

    def run(self, task: str = "", **values: Any) -> dict[str, Any]:
        """Take steps until the model ends; `task` is the next message of an earlier trajectory."""
        self._task = task
        return super().run(task, **values)

    def add_messages(self, *messages: dict[str, Any]) -> list[dict[str, Any]]:
        """Add messages; the first ones are the system prompt and the task."""
        if not self._earlier:
            return super().add_messages(*messages)
        self.messages, self._earlier = self._earlier, []
        if self.messages[-1]["role"] == "assistant":  # it ended between a command and its output
            self.messages.pop()
        return super().add_messages(self.model.format_message(role="user", content=self._task))

    def save(self, path: Path | None, *extra: dict[str, Any]) -> dict[str, Any]:
        """Write the trajectory as a whole, so that the next turn never reads a half."""
        data = super().save(path and path.with_suffix(".part"), *extra)
        if path:
            path.with_suffix(".part").replace(path)
        return data
