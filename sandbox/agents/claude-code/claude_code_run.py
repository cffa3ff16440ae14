"""Run Claude Code on the instructions, and continue its session until the time ends."""

import argparse
import json
import os

from continuing import SESSION, CommandLine, run

HOURS = 9 * 3_600_000
"""The longest command of its shell, in milliseconds. By default, it ends commands after two minutes."""

parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True)
options = parser.parse_args()

SESSION.mkdir(parents=True, exist_ok=True)
(SESSION / "settings.json").write_text(json.dumps({"cleanupPeriodDays": 3650, "includeCoAuthoredBy": False}))
os.environ |= {
    "CLAUDE_CONFIG_DIR": str(SESSION),
    "ANTHROPIC_MODEL": options.model,
    **{f"ANTHROPIC_DEFAULT_{size}_MODEL": options.model for size in ("OPUS", "SONNET", "HAIKU")},
    "CLAUDE_CODE_SUBAGENT_MODEL": options.model,
    "BASH_DEFAULT_TIMEOUT_MS": str(HOURS),
    "BASH_MAX_TIMEOUT_MS": str(HOURS),
}
COMMAND = [
    "claude",
    "--print",
    "--verbose",
    "--output-format=stream-json",
    "--permission-mode=bypassPermissions",
    "--disallowedTools=WebSearch,WebFetch",
]
run(
    CommandLine(
        first=lambda message: [*COMMAND, "--", message],
        again=lambda message: [*COMMAND, "--continue", "--", message],
        session="projects/*/*.jsonl",
    )
)
