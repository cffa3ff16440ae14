#!/bin/bash
# Called for each run. $INSTRUCTIONS_FILE has the task, $DATA_DIR the data. What is written to
# $SUBMISSION_DIR/submission.csv is graded; $CODE_DIR and $LOGS_DIR are kept. Python is "$MLEBENCH_PYTHON".
set -eu

cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"

# Says whether the submission is valid, and not its score.
sh "$VALIDATE_SCRIPT"
