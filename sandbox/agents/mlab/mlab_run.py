"""Run MLAgentBench's research agent on one competition.

MLAgentBench's own runner supports only the tasks of its benchmark, reads API keys from files, and stops after 50 steps
or 5 hours. This script gives its environment the folders of the run, and its agent access to the gateway.
"""

import argparse
import dataclasses
import json
import os
import selectors
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import language_model

sys.modules["MLAgentBench.LLM"] = language_model

import anthropic  # noqa: E402
import openai  # noqa: E402

# MLAgentBench's prompts contain these constants; newer clients no longer define them.
anthropic.HUMAN_PROMPT, anthropic.AI_PROMPT = "\n\nHuman:", "\n\nAssistant:"

from MLAgentBench import environment, low_level_actions  # noqa: E402
from MLAgentBench.agents.agent_research import ResearchAgent  # noqa: E402
from MLAgentBench.schema import EnhancedJSONEncoder  # noqa: E402

TASK = "competition"
USED_UP = (402, 429)
"""Status codes by which the gateway reports a used-up budget, in Anthropic's and in OpenAI's API."""
PROBLEM = """{instructions}

{description}

Your working directory contains the folder `data` with the data, and the folder `submission` for submission.csv.
`train.py` is empty: edit it so that it writes submission/submission.csv, and execute it."""


class Environment(environment.Environment):
    """MLAgentBench's environment in the folders of the run."""

    def _initialize_task_env(self) -> None:
        folder = Path(self.work_dir)
        (folder / "backup").mkdir(parents=True)
        (folder / "data").symlink_to(os.environ["DATA_DIR"])
        (folder / "submission").symlink_to(os.environ["SUBMISSION_DIR"])
        (folder / "train.py").touch()

    def execute(self, action: Any) -> str:
        """Execute an action. "List Files" gets a trailing slash, as its `ls -F` does not follow the link `data`."""
        folder = action.args.get("dir_path") if isinstance(action.args, dict) else None
        if action.name == "List Files" and isinstance(folder, str):
            action = dataclasses.replace(action, args={**action.args, "dir_path": os.path.join(folder, "")})  # noqa: PTH118
        return super().execute(action)

    def save(self, curr_step: int | str) -> None:
        """Write the trace. The original also copies the whole folder at each of the 2000 steps."""
        text = json.dumps(self.trace, cls=EnhancedJSONEncoder)
        Path(self.log_dir, "trace.json").write_text(text)


class Agent(ResearchAgent):
    """MLAgentBench's research agent with a single state file. The original writes a new, larger one at each step."""

    def save(self, file_path: str) -> None:
        """Replace the file of the previous step."""
        super().save(str(Path(file_path).with_name("agent.json")))


class OpenStreams(selectors.DefaultSelector):
    """The streams of a script that "Execute Script" reads from, without those that the script has closed.

    The original asks them again and again, prints an empty line each time, and fills the log until the script ends.
    """

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """The streams that have something to read."""
        ready = super().select(timeout)
        ended = [key for key, _ in ready if not key.fileobj.buffer.peek(1)]
        for key in ended:
            self.unregister(key.fileobj)
        return [(key, events) for key, events in ready if key not in ended]

    def get_map(self) -> Mapping[Any, Any]:
        """Never empty: the original would not wait for a script that has closed all of them."""
        return super().get_map() or {None: None}


low_level_actions.selectors = SimpleNamespace(DefaultSelector=OpenStreams, EVENT_READ=selectors.EVENT_READ)


def problem() -> str:
    """The task description for the agent."""
    instructions = Path(os.environ["INSTRUCTIONS_FILE"]).read_text()
    return PROBLEM.format(
        instructions=instructions, description=Path(os.environ["DATA_DIR"], "description.md").read_text()
    )


def main() -> None:
    """Run the agent until its final answer, its last step, or the end of its budget for language models."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--fast-model", help="model for summaries; by default --model")
    parser.add_argument("--edit-model", help="model for editing scripts; by default --model")
    parser.add_argument("--steps", type=int, required=True)
    options = parser.parse_args()
    language_model.FAST_MODEL = options.fast_model or options.model
    settings = argparse.Namespace(
        task=TASK,
        log_dir=os.environ["LOGS_DIR"],
        work_dir=os.environ["CODE_DIR"],
        max_steps=options.steps,
        max_time=int(float(os.environ["TIME_LIMIT_SECONDS"])),  # for `signal.alarm`
        device=os.environ.get("CUDA_VISIBLE_DEVICES", "0"),
        python=os.environ["MLEBENCH_PYTHON"],
        interactive=False,
        resume=None,
        resume_step=0,
        llm_name=options.model,
        fast_llm_name=language_model.FAST_MODEL,
        edit_script_llm_name=options.edit_model or options.model,
        edit_script_llm_max_tokens=4000,
        agent_max_steps=options.steps,
        # The defaults of MLAgentBench's runner: no summaries of old steps.
        retrieval=False,
        actions_remove_from_prompt=["Retrieval from Research Log", "Append Summary to Research Log", "Reflection"],
        actions_add_to_prompt=[],
        valid_format_entires=None,
        max_steps_in_context=3,
        max_observation_steps_in_context=3,
        max_retries=5,
    )
    environment.get_task_info = lambda _task: (TASK, problem())
    with Environment(settings) as env:
        try:
            print("end:", Agent(settings, env).run(env), flush=True)
        except (openai.APIStatusError, anthropic.APIStatusError) as error:
            if error.status_code not in USED_UP:
                raise
            print("end:", error, flush=True)
    env.save("final")
    for link in ("data", "submission"):  # the folder is harvested as the agent's code
        Path(env.work_dir, link).unlink(missing_ok=True)


if __name__ == "__main__":
    main()
