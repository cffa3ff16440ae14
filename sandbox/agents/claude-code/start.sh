#!/bin/bash
set -eu
cd "$CODE_DIR"
exec "$MLEBENCH_PYTHON" "$AGENT_DIR/claude_code_run.py" "$@"
