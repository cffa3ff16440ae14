"""Run the Codex CLI on the instructions, and continue its session until the time ends."""

import argparse
import json
import os

from continuing import SESSION, CommandLine, run

# Tools that ask a server, and lists of plugins and models that would be downloaded, are off. Codex's shell has no time
# limit: a command that goes on becomes a session that the model asks for more.
CONFIG = """\
model = {model}
model_provider = "gateway"
web_search = "disabled"
check_for_update_on_startup = false
[model_providers.gateway]
name = "gateway"
base_url = {url}
env_key = "OPENAI_API_KEY"
wire_api = "responses"
stream_idle_timeout_ms = 3600000
[analytics]
enabled = false
[feedback]
enabled = false
[agents]
enabled = false
[features]
apps = false
plugins = false
remote_plugin = false
tool_suggest = false
skill_mcp_dependency_install = false
"""

parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True)
options = parser.parse_args()

SESSION.mkdir(parents=True, exist_ok=True)
values = {"model": json.dumps(options.model), "url": json.dumps(os.environ["OPENAI_BASE_URL"])}
(SESSION / "config.toml").write_text(CONFIG.format(**values))
os.environ["CODEX_HOME"] = str(SESSION)
FLAGS = ["--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
run(
    CommandLine(
        first=lambda message: ["codex", "exec", *FLAGS, "--", message],
        again=lambda message: ["codex", "exec", "resume", "--last", *FLAGS, "--", message],
        session="sessions/*/*/*/rollout-*.jsonl",
    )
)
