#!/bin/bash
set -eu
cd "$CODE_DIR"
exec "$MLEBENCH_PYTHON" "$AGENT_DIR/mini_swe_run.py" "$@"
