#!/bin/bash
# MLAgentBench is a checkout, not a package.
set -eu
cd "$CODE_DIR"
PYTHONPATH=/opt/mlab:$AGENT_DIR exec "$MLEBENCH_PYTHON" "$AGENT_DIR/mlab_run.py" "$@"
