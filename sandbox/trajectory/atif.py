"""Trajectories in ATIF 1.8, the Agent Trajectory Interchange Format that viewers and trainers of agents read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sandbox.trajectory.calls import Call
from sandbox.trajectory.messages import Message
from sandbox.trajectory.threads import Threads

VERSION = "ATIF-v1.8"
FILE = "trajectory.json"
"""Name of the file in the folder of a run."""
NO_MESSAGES = (
    "The messages were not kept: the steps are the requests to language models, with their tokens and costs. "
    "MLEBENCH_LLM_TRANSCRIPTS=true keeps them."
)


def trajectory(calls: Iterable[Call], *, session: str, agent: str, version: str) -> dict[str, Any]:
    """The trajectory of a run, as a JSON object; without calls, it has no steps.

    A step is a message that the agent sends for the first time, or an answer of the model with its tokens and cost. The
    results of tools are part of the step that called them. A request without an answer is a step that says why.

    Args:
        calls: the run's requests to language models.
        session: id of the run.
        agent: name of the agent.
        version: version of the agent: the fingerprint of its files.
    """
    writer = _Writer()
    for call in calls:
        writer.add(call)
    return {
        "schema_version": VERSION,
        "session_id": session,
        "agent": {"name": agent, "version": version, **({"model_name": model} if (model := writer.model()) else {})},
        "steps": writer.steps,
        **({"notes": NO_MESSAGES} if writer.steps and not writer.transcripts else {}),
        "final_metrics": writer.totals(),
    }


class _Writer:
    """Makes the steps of a trajectory, call by call."""

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []
        self.transcripts = 0
        self._threads = Threads()
        self._callers: dict[str, dict[str, Any]] = {}
        """The step of each call of a tool, by the id of the call."""
        self._sent: list[Call] = []

    def add(self, call: Call) -> None:
        """Add the steps of a call."""
        self.transcripts += call.asked is not None
        for message in self._threads.fresh(call.asked or ()):
            self._ask(message, call)
        if call.refused:
            extra = {"call": call.id, "status": call.status, "model": call.model}
            self._step("system", f"request refused: {call.message}", call.started_at.isoformat(), extra=extra)
            return
        self._sent.append(call)
        answer = call.answer or Message("assistant")
        self._threads.answered(answer)
        step = self._step("agent", answer.text, call.ended_at.isoformat(), model_name=call.model)
        if answer.reasoning:
            step["reasoning_content"] = answer.reasoning
        self._tools(step, answer)
        step["metrics"] = _metrics([call])
        step["llm_call_count"] = 1
        step["extra"] = {"call": call.id, "status": call.status, "seconds": call.seconds}
        if call.message:
            step["extra"]["message"] = call.message

    def model(self) -> str | None:
        """The model that wrote most."""
        tokens_by_model: dict[str, int] = {}
        for call in self._sent:
            tokens_by_model[call.model] = tokens_by_model.get(call.model, 0) + call.output_tokens
        return max(tokens_by_model, key=lambda name: tokens_by_model[name]) if tokens_by_model else None

    def totals(self) -> dict[str, Any]:
        """The sums over all steps."""
        sums = {f"total_{name}": value for name, value in _metrics(self._sent).items()}
        return {**sums, "total_steps": len(self.steps)}

    def _ask(self, message: Message, call: Call) -> None:
        timestamp = call.started_at.isoformat()
        if message.role == "tool":
            self._observe(message, timestamp)
        elif message.role == "assistant":  # an example in a prompt, or an answer that the agent has changed
            step = self._step("agent", message.text, timestamp, is_copied_context=True)
            self._tools(step, message)
        else:
            self._step(message.role, message.text, timestamp)

    def _observe(self, message: Message, timestamp: str) -> None:
        """Add the result of a tool to the step that called it."""
        result: dict[str, Any] = {"content": message.text}
        step = self._callers.get(message.call_id)
        if step is None:
            step = self._step("system", "", timestamp)
        else:
            result = {"source_call_id": message.call_id, **result}
        step.setdefault("observation", {"results": []})["results"].append(result)

    def _tools(self, step: dict[str, Any], message: Message) -> None:
        if message.calls:
            step["tool_calls"] = [
                {"tool_call_id": call.id, "function_name": call.name, "arguments": call.arguments}
                for call in message.calls
            ]
            self._callers.update({call.id: step for call in message.calls})

    def _step(self, source: str, text: str, timestamp: str, **fields: Any) -> dict[str, Any]:
        step = {"step_id": len(self.steps) + 1, "timestamp": timestamp, "source": source, "message": text, **fields}
        self.steps.append(step)
        return step


def _metrics(calls: list[Call]) -> dict[str, Any]:
    """The tokens and the cost of calls. The cost is left out if that of any is unknown."""
    costs = [call.cost_usd for call in calls]
    known_costs = [cost for cost in costs if cost is not None]
    return {
        "prompt_tokens": sum(call.input_tokens for call in calls),
        "completion_tokens": sum(call.output_tokens for call in calls),
        "cached_tokens": sum(call.cached_tokens for call in calls),
        **({"cost_usd": sum(known_costs)} if len(known_costs) == len(costs) else {}),
    }
