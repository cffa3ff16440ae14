"""Links from a report to what the store has of runs: the page with the trajectory, and the log of the agent."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sandbox.trajectory.page import FILE as PAGE
from storage.runs.folders import RunFolder, StoredRun
from storage.store import Store

if TYPE_CHECKING:
    import pandas as pd

LOG = "logs/agent.log"


def report_links(store: Store, runs: pd.DataFrame, root: str) -> dict[str, dict[tuple[str, str], str]]:
    """By name of the field of `grading.page.Results`: (run group, run id) -> link, for the runs that have the file.

    `root` is the root of the store as seen from the report.
    """
    found: dict[str, dict[tuple[str, str], str]] = {"trajectories": {}, "logs": {}}
    if runs.empty:
        return found
    known = runs[runs["seed"].ge(0) & runs["competition_id"].notna()]
    asked = (known["gateway_requests"].fillna(0) > 0).tolist()
    rows = known.to_dict("records")
    folders = [RunFolder(store, row["run_group"], row["competition_id"], int(row["seed"])) for row in rows]
    records = store.concurrently([folder.read_run_if_valid for folder in folders])
    files = [
        (name, record, f"{StoredRun(folder, record).source}/{file}")
        for folder, record, made_requests in zip(folders, records, asked, strict=True)
        if record is not None
        for name, file in (("logs", LOG), *((("trajectories", PAGE),) if made_requests else ()))
    ]
    existing = store.concurrently([partial(store.exists, url) for _, _, url in files])
    for (name, record, url), exists in zip(files, existing, strict=True):
        if exists:
            found[name][record.run_group, record.run_id] = f"{root}/{store.relative(url)}"
    return found
