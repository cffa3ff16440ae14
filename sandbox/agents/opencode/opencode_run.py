"""Run OpenCode on the instructions, and continue its session until the time ends."""

import argparse
import json
import os

from continuing import SESSION, CommandLine, run

HOURS = 9 * 3_600_000
"""Milliseconds after which its shell ends a command by default, instead of two minutes."""

parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True)
parser.add_argument("--context", type=int, default=272_000)
parser.add_argument("--output", type=int, default=32_000)
options = parser.parse_args()

SESSION.mkdir(parents=True, exist_ok=True)
limit = {"context": options.context, "output": options.output}
provider = {
    "npm": "@ai-sdk/openai-compatible",  # part of its binary
    "name": "gateway",
    "options": {"baseURL": os.environ["OPENAI_BASE_URL"], "apiKey": "{env:OPENAI_API_KEY}"},
    "models": {options.model: {"name": options.model, "limit": limit, "tool_call": True}},
}
config = {
    "autoupdate": False,
    "share": "disabled",
    "model": f"gateway/{options.model}",
    "small_model": f"gateway/{options.model}",
    "enabled_providers": ["gateway"],
    "permission": dict.fromkeys(("webfetch", "websearch", "codesearch"), "deny"),
    "provider": {"gateway": provider},
}
os.environ |= {
    "OPENCODE_CONFIG_CONTENT": json.dumps(config),
    "OPENCODE_EXPERIMENTAL_BASH_DEFAULT_TIMEOUT_MS": str(HOURS),
    "XDG_DATA_HOME": str(SESSION),
}
FLAGS = ["--format=json", "--auto"]  # --auto: what is not denied is allowed
run(
    CommandLine(
        first=lambda message: ["opencode", "run", *FLAGS, "--", message],
        again=lambda message: ["opencode", "run", "--continue", *FLAGS, "--", message],
        session="opencode/opencode.db",
    )
)
