"""Give the instructions to OpenHands and let it work in the code folder."""

import argparse
import os
from pathlib import Path

from openhands.sdk import LLM, Agent, Conversation, Tool
from openhands.tools.file_editor import FileEditorTool
from openhands.tools.task_tracker import TaskTrackerTool
from openhands.tools.terminal import TerminalTool

parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True)
parser.add_argument("--steps", type=int, required=True)
options = parser.parse_args()

provider = "ANTHROPIC" if options.model.startswith("anthropic/") else "OPENAI"
llm = LLM(
    model=options.model,
    api_key=os.environ[f"{provider}_API_KEY"],
    base_url=os.environ[f"{provider}_BASE_URL"],
)
tools = [Tool(name=each.name) for each in (TerminalTool, FileEditorTool, TaskTrackerTool)]
conversation = Conversation(
    agent=Agent(llm=llm, tools=tools),
    workspace=os.environ["CODE_DIR"],
    persistence_dir=os.environ["LOGS_DIR"],
    max_iteration_per_run=options.steps,
)
conversation.send_message(Path(os.environ["INSTRUCTIONS_FILE"]).read_text())
conversation.run()
