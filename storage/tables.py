"""Parquet tables below `tables/`: one row a run, a graded submission, a snapshot, a call of a model; and aggregates.

Each is partitioned by run group.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from storage.store import Store

if TYPE_CHECKING:
    import pandas as pd

Table = Literal[
    "runs",
    "grades",
    "snapshots",
    "usage",
    "comparisons",
    "examinations",
    "plagiarism",
    "violations",
    "familiarity",
    "familiarity_correlation",
    # Made of the above; one row is described where it is computed, in `grading`.
    "aggregates/rates",
    "aggregates/by_seed",
    "aggregates/gaps",
    "aggregates/pass_at_k",
    "aggregates/best_of_k",
    "aggregates/competitions",
    "aggregates/over_time",
    "aggregates/usage_by_run",
    "aggregates/usage",
]


def write_table(
    store: Store, table: Table, run_group: str, rows: Iterable[Mapping[str, Any]], part: str = "part-0"
) -> None:
    """Replace the rows of `run_group`. The group is in the path, so the file does not repeat it.

    Tasks that run side by side and share a table write a `part` each: none reads what another is about to replace.
    """
    import pandas as pd

    write_frame(store, table, run_group, pd.DataFrame(list(rows)), part)


def write_frame(store: Store, table: Table, run_group: str, frame: pd.DataFrame, part: str = "part-0") -> None:
    """As `write_table`, with the rows as a data frame; one without rows leaves no file."""
    url = store.url("tables", table, f"run_group={run_group}", f"{part}.parquet")
    if frame.empty:
        store.remove(url)
        return
    frame = frame.drop(columns="run_group", errors="ignore")
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    store.write(url, buffer.getvalue())


def read_table(store: Store, table: Table, run_groups: Iterable[str] | None = None) -> pd.DataFrame:
    """All rows, or those of some run groups, with `run_group` as a column; an empty frame if there are none.

    The same as ``pandas.read_parquet("<root>/tables/grades")``, but for the type of `run_group` (text here).
    """
    import pandas as pd

    frames = []
    for url in store.glob(f"tables/{table}/run_group=*/*.parquet"):
        group = url.split("run_group=", 1)[1].split("/", 1)[0]
        if run_groups is None or group in set(run_groups):
            frame = pd.read_parquet(io.BytesIO(store.top.fs.cat_file(store.top.path(store.relative(url)))))
            frames.append(frame.assign(run_group=group))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
