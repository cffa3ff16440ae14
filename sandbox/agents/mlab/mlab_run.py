"""Let MLAgentBench's research agent work on one competition.

Its runner knows the tasks of its own benchmark only, asks APIs with keys from files, and stops at 50 steps or 5 hours.
Here its environment gets a folder of ours, and its agent the gateway.
"""

import argparse
import json
import os
import sys
from pathlib import Path

import language_model

sys.modules["MLAgentBench.LLM"] = language_model

import anthropic  # noqa: E402
import openai  # noqa: E402

# Its prompts contain these; newer clients no longer define them.
anthropic.HUMAN_PROMPT, anthropic.AI_PROMPT = "\n\nHuman:", "\n\nAssistant:"

from MLAgentBench import environment  # noqa: E402
from MLAgentBench.agents.agent_research import ResearchAgent  # noqa: E402
from MLAgentBench.schema import EnhancedJSONEncoder  # noqa: E402

TASK = "competition"
USED_UP = (402, 429)
"""How the gateway says, in its two languages, that the budget is used up."""
PROBLEM = """{instructions}

{description}

In your working directory, `data` is the folder of the data and `submission` the one for submission.csv. `train.py` is
empty: edit it so that it writes submission/submission.csv, and execute it."""


class Environment(environment.Environment):
    """MLAgentBench's environment in a folder of ours."""

    def _initialize_task_env(self) -> None:
        folder = Path(self.work_dir)
        (folder / "backup").mkdir(parents=True)
        (folder / "data").symlink_to(os.environ["DATA_DIR"])
        (folder / "submission").symlink_to(os.environ["SUBMISSION_DIR"])
        (folder / "train.py").touch()

    def save(self, curr_step: int | str) -> None:
        """Write what has been done; the original also copies the whole folder, at each of 2000 steps."""
        text = json.dumps(self.trace, cls=EnhancedJSONEncoder)
        Path(self.log_dir, "trace.json").write_text(text)


class Agent(ResearchAgent):
    """MLAgentBench's research agent, which writes down its state once, not anew in a larger file at each step."""

    def save(self, file_path: str) -> None:
        """Replace the file of the step before."""
        super().save(str(Path(file_path).with_name("agent.json")))


def problem() -> str:
    """What the agent is asked to do."""
    instructions = Path(os.environ["INSTRUCTIONS_FILE"]).read_text()
    return PROBLEM.format(
        instructions=instructions, description=Path(os.environ["DATA_DIR"], "description.md").read_text()
    )


def main() -> None:
    """Run the agent to its final answer, its last step, or the end of what it may ask of language models."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--fast-model", help="for summaries; the same by default")
    parser.add_argument("--edit-model", help="for editing scripts; the same by default")
    parser.add_argument("--steps", type=int, required=True)
    options = parser.parse_args()
    language_model.FAST_MODEL = options.fast_model or options.model
    settings = argparse.Namespace(
        task=TASK,
        log_dir=os.environ["LOGS_DIR"],
        work_dir=os.environ["CODE_DIR"],
        max_steps=options.steps,
        max_time=float(os.environ["TIME_LIMIT_SECONDS"]),
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
        # As the runner has them by default: no summaries of steps long past.
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
    for link in ("data", "submission"):  # what is left in the folder is the agent's code
        Path(env.work_dir, link).unlink(missing_ok=True)


if __name__ == "__main__":
    main()
