#!/bin/sh
# The code that makes a submission is kept with it.
cp "$AGENT_DIR"/*.py "$CODE_DIR"
exec "${MLEBENCH_PYTHON:-python3}" -W ignore "$CODE_DIR/baseline.py"
