#!/bin/bash
set -eu
cd "$CODE_DIR"
exec "$MLEBENCH_PYTHON" "$AGENT_DIR/codex_run.py" "$@"
