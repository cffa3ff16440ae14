"""Tables of aggregates, where some runs have no seed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from storage.store import Store
from storage.tables import write_table
from tasks.report import write_aggregates

FLAGS = ("any_medal", "gold_medal", "silver_medal", "bronze_medal", "above_median", "valid_submission")


def test_a_run_without_a_seed_goes_by_its_name(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    grade: dict[str, Any] = {
        "outcome": "valid",
        "competition_id": "digits",
        "agent": "a",
        "edition": "v1",
        "complexity": "demo",
    }
    grade |= {"category": "Tabular", "score": 0.5, "created_at": datetime.now(UTC), "submission_exists": True}
    grade |= {**dict.fromkeys(FLAGS, True), "is_lower_better": False}
    for group, seed in (("numbered", 0), ("named", None)):
        write_table(store, "grades", group, [{**grade, "run_id": f"{group}-run", "seed": seed}])
        write_aggregates(store, group)
    found = pd.read_parquet(f"{store.local()}/tables/aggregates/by_seed").drop_duplicates("run_group")
    found = found.set_index(found["run_group"].astype(str))
    assert found["run_id"].to_dict() == {"numbered": None, "named": "named-run"}
    assert found["seed"].fillna(-1).to_dict() == {"numbered": 0, "named": -1}
