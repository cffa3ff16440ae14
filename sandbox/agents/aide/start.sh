#!/bin/bash
# AIDE reads a single description file, and writes to its own folders below the current directory.
set -eu
cd "$AGENT_DIR"
{ cat "$INSTRUCTIONS_FILE"; printf '\n\nCOMPETITION\n\n'; cat "$DATA_DIR/description.md"; } > description.txt
exec "$MLEBENCH_PYTHON" aide_run.py data_dir="$DATA_DIR" desc_file=description.txt \
    log_dir="$LOGS_DIR" workspace_dir="$AGENT_DIR/workspaces" exp_name=run "$@"
