"""Runs the baseline agent on the public files of a dataset that need not be in a store, for `mlebench check`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from sandbox.agent_registry import load_agent

SECONDS = 60.0
"""Time limit of the agent. A model of a few minutes is what a leak is looked for with."""
_GRACE = 30.0


def baseline_submission(
    public: Path, sample_submission: Path, scratch: Path, seconds: float = SECONDS
) -> tuple[Path | None, str]:
    """The agent's submission and the last line that it printed; None if it left no submission.

    The agent is ours and is trusted, and ends before its time limit by itself: it is a plain child process.
    """
    agent = load_agent("baseline")
    folders = {name: scratch / name.lower() for name in ("CODE_DIR", "SUBMISSION_DIR", "TMPDIR")}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "MLEBENCH_PYTHON": sys.executable,
        "AGENT_DIR": str(agent.folder),
        "DATA_DIR": str(public),
        "SAMPLE_SUBMISSION": str(sample_submission),
        "TIME_LIMIT_SECONDS": f"{seconds:g}",
        "SEED": "0",
        "OMP_NUM_THREADS": "1",
        **agent.env,
        **{name: str(folder) for name, folder in folders.items()},
    }
    command = ["sh", str(agent.folder / "start.sh")]
    try:
        run = subprocess.run(
            command, env=environment, cwd=scratch, capture_output=True, text=True, timeout=seconds + _GRACE, check=False
        )
    except subprocess.TimeoutExpired:
        return None, f"it did not end in {seconds + _GRACE:.0f} seconds, perhaps because this machine is busy"
    said = (run.stdout + run.stderr).strip().splitlines()
    submission = folders["SUBMISSION_DIR"] / "submission.csv"
    return (submission if submission.is_file() else None), said[-1][:300] if said else "it printed nothing"
