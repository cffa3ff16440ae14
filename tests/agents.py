"""Agents that tests write."""

from __future__ import annotations

from pathlib import Path


def write_agent(folder: Path, script: str, trusted: bool = True) -> Path:
    """Create the folder of an agent, which is named after it, with the shell script `start.sh`; returns the folder."""
    folder.mkdir(parents=True)
    (folder / "agent.yaml").write_text(
        f"name: {folder.name}\ndescription: {folder.name}\ntrusted: {'true' if trusted else 'false'}\n"
    )
    (folder / "start.sh").write_text(f"#!/bin/bash\n{script}")
    return folder


def noting(notes: Path, then: str) -> str:
    """A script that notes each start in `notes`/starts-<competition>, leaves the sample submission, and goes on."""
    note = f"echo start >> {notes}/starts-$COMPETITION_ID"
    return f'{note}\ncp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"\n{then}'
