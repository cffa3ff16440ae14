"""Parquet tables below `tables/`: one row a run, a graded submission; partitioned by run group."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from storage.store import Store

if TYPE_CHECKING:
    import pandas as pd

Table = Literal["runs", "grades"]


def write_table(store: Store, table: Table, run_group: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Replace the partition of `run_group`. The group is in the path, so the file does not repeat it."""
    import pandas as pd

    frame = pd.DataFrame([{name: value for name, value in row.items() if name != "run_group"} for row in rows])
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    store.write(store.url("tables", table, f"run_group={run_group}", "part-0.parquet"), buffer.getvalue())


def read_table(store: Store, table: Table, run_groups: Iterable[str] | None = None) -> pd.DataFrame:
    """All rows, or those of some run groups, with `run_group` as a column; an empty frame if there are none.

    The same as ``pandas.read_parquet("<root>/tables/grades")``, but for the type of `run_group` (text here).
    """
    import pandas as pd

    frames = []
    for url in store.glob(f"tables/{table}/run_group=*/part-0.parquet"):
        group = url.split("run_group=", 1)[1].split("/", 1)[0]
        if run_groups is None or group in set(run_groups):
            frame = pd.read_parquet(io.BytesIO(store.top.fs.cat_file(store.top.path(store.relative(url)))))
            frames.append(frame.assign(run_group=group))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
