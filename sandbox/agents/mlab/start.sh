#!/bin/bash
# MLAgentBench takes a task as a folder: env/ to work in, scripts/ with what is asked. Its work folder is the code folder.
set -eu
task=$TMPDIR/tasks/competition
mkdir -p "$task/env" "$task/scripts"
ln -s "$DATA_DIR" "$task/env/data"
{
    cat "$INSTRUCTIONS_FILE" "$DATA_DIR/description.md"
    printf '\nWrite train.py so that it leaves submission.csv in the current folder; the data are in ./data.\n'
} > "$task/scripts/research_problem.txt"
printf 'raise SystemExit("nothing here yet")\n' > "$task/env/train.py"
export OPENAI_API_BASE=$OPENAI_BASE_URL
cd "$TMPDIR"

hand_in() {
    newest=$(find "$CODE_DIR" -name submission.csv -type f -printf '%T@ %p\n' 2> /dev/null | sort -n | tail -n 1 | cut -d ' ' -f 2-)
    if [ -n "$newest" ] && ! cmp -s "$newest" "$SUBMISSION_DIR/submission.csv"; then
        cp "$newest" "$SUBMISSION_DIR/.part" && mv "$SUBMISSION_DIR/.part" "$SUBMISSION_DIR/submission.csv"
    fi
}
(while sleep 20; do hand_in; done) &
trap hand_in EXIT
"$MLEBENCH_PYTHON" -m MLAgentBench.runner --python "$MLEBENCH_PYTHON" --task "$task" --device 0 \
    --log-dir "$LOGS_DIR" --work-dir "$CODE_DIR" --agent-type ResearchAgent "$@"
