"""The agent of the paper."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from typing import Any

import anthropic

import MLAgentBench.high_level_actions as high_level_actions
from MLAgentBench.LLM import complete_text
from MLAgentBench.schema import Action, EnhancedJSONEncoder


class ResearchAgent:
    """Asks a language model for actions, executes them, and tells it the last observations."""

    def __init__(self, args: Namespace, env: Any) -> None:
        self.args = args
        self.log_dir = os.path.join(args.log_dir, "agent_log")  # noqa: PTH118
        os.makedirs(self.log_dir)  # noqa: PTH103
        names = [name for name in env.action_infos if name not in args.actions_remove_from_prompt]
        self.initial_prompt = f"Tools: {', '.join(names)}\nResearch Problem: {env.research_problem}\n"
        high_level_actions.EDIT_SCRIPT_MODEL = args.edit_script_llm_name
        high_level_actions.EDIT_SCRIPT_MAX_TOKENS = args.edit_script_llm_max_tokens
        self.history_steps: list[dict[str, Any]] = []

    def save(self, file_path: str) -> None:
        """Write the state."""
        with open(file_path, "w") as file:  # noqa: PTH123
            json.dump({**self.__dict__, "args": vars(self.args)}, file, cls=EnhancedJSONEncoder)

    def run(self, env: Any) -> str:
        """Take steps until the environment says that it is over."""
        while not env.is_final() and len(self.history_steps) < self.args.agent_max_steps:
            number, prompt = len(self.history_steps), self.initial_prompt
            for step in self.history_steps[-self.args.max_steps_in_context :]:
                prompt += f"{anthropic.AI_PROMPT}\n{step['action']}\nObservation:\n```\n{step['observation']}\n```\n\n"
            log_file = os.path.join(self.log_dir, f"step_{number}_log.log")  # noqa: PTH118
            completion = complete_text(prompt, log_file, self.args.llm_name)
            name, _, given = completion.partition("Action Input:")
            action = Action(name.rpartition("Action:")[2].strip(), json.loads(given))
            self.history_steps.append({"action": completion, "observation": env.execute(action)})
            self.save(os.path.join(self.log_dir, f"agent_{number}_{number}.json"))  # noqa: PTH118
        return "Finished due to env.is_final() == True"
