"""Links from a report to what the store has of runs: the page with the trajectory, and the log of the agent."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sandbox.trajectory.page import FILE as PAGE
from storage.runs.folders import RunFolder
from storage.store import Store

if TYPE_CHECKING:
    import pandas as pd

LOG = "logs/agent.log"


def report_links(store: Store, runs: pd.DataFrame, root: str) -> dict[str, dict[tuple[str, str], str]]:
    """By name of the field of `grading.page.Results`: (run group, run id) -> link.

    Every run that an agent made here has a log. Whether there is a trajectory is asked for runs with requests to
    language models. `root` is the root of the store as seen from the report.
    """
    found: dict[str, dict[tuple[str, str], str]] = {"trajectories": {}, "logs": {}}
    if runs.empty:
        return found
    known = runs[runs["seed"].ge(0) & runs["competition_id"].notna() & runs["backend"].notna()]
    pages = {}
    texts, asked = known[["files", "submission_from"]].fillna(""), known["gateway_requests"].fillna(0) > 0
    for row, files, original, has_requests in zip(
        known.to_dict("records"), texts["files"], texts["submission_from"], asked, strict=True
    ):
        run = row["run_group"], row["run_id"]
        folder = RunFolder(store, row["run_group"], row["competition_id"], int(row["seed"]), files)
        source = original or folder.files_url
        found["logs"][run] = f"{root}/{store.relative(source)}/{LOG}"
        if has_requests:
            pages[run] = f"{source}/{PAGE}"
    existing = store.concurrently([partial(store.exists, url) for url in pages.values()])
    for (run, url), exists in zip(pages.items(), existing, strict=True):
        if exists:
            found["trajectories"][run] = f"{root}/{store.relative(url)}"
    return found
