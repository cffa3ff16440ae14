"""Run OpenHands on the instructions, in the code folder, until it calls `finish`."""

import argparse
import os
from pathlib import Path

from openhands.sdk import LLM, Conversation
from openhands.sdk.event import ActionEvent, MessageEvent
from openhands.sdk.tool.builtins.finish import FinishAction
from openhands.tools.preset.default import get_default_agent

NUDGES = 10
GO_ON = "Nobody can answer. Continue as you think best, and call `finish` when nothing is left to do."

parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True)
parser.add_argument("--steps", type=int, required=True)
options = parser.parse_args()

provider = "ANTHROPIC" if options.model.startswith("anthropic/") else "OPENAI"
llm = LLM(
    model=options.model,
    api_key=os.environ[f"{provider}_API_KEY"],
    base_url=os.environ[f"{provider}_BASE_URL"],
    num_retries=8,  # about six minutes in total, as the gateway may be restarting
)
# The tools of OpenHands' command line: terminal, editor, list of tasks, and summaries of what exceeds the context.
conversation = Conversation(
    agent=get_default_agent(llm, cli_mode=True),
    workspace=os.environ["CODE_DIR"],
    persistence_dir=os.environ["LOGS_DIR"],
    max_iteration_per_run=options.steps,
)
conversation.send_message(Path(os.environ["INSTRUCTIONS_FILE"]).read_text())
for _ in range(NUDGES):
    conversation.run()
    own = [each for each in conversation.state.events if each.source == "agent"]
    taken = sum(isinstance(each, ActionEvent | MessageEvent) for each in own)
    if taken >= options.steps or not own or isinstance(getattr(own[-1], "action", None), FinishAction):
        break
    if not isinstance(own[-1], MessageEvent):  # it was stopped because it repeated itself
        break
    conversation.max_iteration_per_run = options.steps - taken
    conversation.send_message(GO_ON)
