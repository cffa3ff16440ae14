"""Run mini-swe-agent on the instructions, and continue its session until the time ends."""

import argparse
import os

from continuing import SESSION, CommandLine, run

HOURS = 9 * 3600
"""Seconds after which its shell ends a command, instead of 30."""

parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True)
options = parser.parse_args()

provider = "ANTHROPIC" if options.model.startswith("anthropic/") else "OPENAI"
trajectory = SESSION / "trajectory.json"
COMMAND = [
    *("/opt/mini-swe-agent/bin/python", "-W", "ignore", "/opt/mini-swe-agent/bin/mini-swe-agent"),
    *("--yolo", "--exit-immediately", "--cost-limit=0"),
    *("--agent-class=continued.ContinuedAgent", f"--model={options.model}", f"--output={trajectory}"),
    *("-c", "mini", "-c", f"environment.timeout={HOURS}"),
    *("-c", f"model.model_kwargs.api_base={os.environ[f'{provider}_BASE_URL']}"),
]
os.environ |= {"PYTHONPATH": os.environ["AGENT_DIR"], "MSWEA_GLOBAL_CONFIG_DIR": os.environ["TMPDIR"]}


def first(message: str) -> list[str]:
    """Begin anew: an earlier trajectory is kept under another name."""
    if trajectory.exists():
        trajectory.rename(SESSION / f"trajectory-{sum(1 for _ in SESSION.glob('trajectory-*.json')) + 1}.json")
    return [*COMMAND, f"--task={message}"]


run(CommandLine(first=first, again=lambda message: [*COMMAND, f"--task={message}"], session="trajectory.json"))
