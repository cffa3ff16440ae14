"""Write the trajectory of a run from its journals, for people and for programs."""

from __future__ import annotations

import contextlib
from pathlib import Path

from common import plain_json
from sandbox.trajectory import atif, page
from sandbox.trajectory.calls import calls_of

JOURNAL, TRANSCRIPTS = "gateway.jsonl", "transcripts.jsonl"


def write_trajectory(
    journals: dict[str, Path], folder: Path, *, session: str, agent: str, version: str
) -> dict[str, Path]:
    """Write the trajectory of a run as ATIF and as a page; returns the files by name, none if it asked no model.

    Args:
        journals: the logs of the run's gateway, by name.
        folder: where to write the files.
        session: id of the run.
        agent: name of the agent.
        version: version of the agent.
    """
    if JOURNAL not in journals:
        return {}
    with contextlib.ExitStack() as opened:
        journal = opened.enter_context(journals[JOURNAL].open("rb"))
        messages = opened.enter_context(journals[TRANSCRIPTS].open("rb")) if TRANSCRIPTS in journals else ()
        trajectory = atif.trajectory(calls_of(journal, messages), session=session, agent=agent, version=version)
    if not trajectory["steps"]:
        return {}
    files = {atif.FILE: folder / atif.FILE, page.FILE: folder / page.FILE}
    files[atif.FILE].write_text(plain_json.dumps(trajectory), "utf-8")
    files[page.FILE].write_text(page.render(trajectory, f"Trajectory of {session}"), "utf-8")
    return files
