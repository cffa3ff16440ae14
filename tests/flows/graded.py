"""A store with a finished and graded run group, for the commands around grading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from competitions import registry
from flows.cli import main
from storage.datasets import prepare
from storage.tables import read_table
from tests.bundles import bundle
from tests.stores import Store, copy_dataset

GROUP = "group"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("dataset")
    competition = registry.get("diabetes")
    (root / "raw.zip").write_bytes(bundle(competition.id))
    prepare(competition.id, root / "raw.zip", root / "diabetes")
    return root / "diabetes"


@pytest.fixture
def group(store: Store, dataset: Path) -> Store:
    """A store in which `GROUP` has run three seeds of diabetes: perfect, the sample, and no submission."""
    for edition in ("v1", "v2"):
        copy_dataset(store, "diabetes", dataset, edition)
    facts = registry.get("diabetes").facts.files
    for seed, source in enumerate((facts.gold_submission, facts.sample_submission, None)):
        url = store.run(GROUP, "diabetes", seed)
        if source:
            store.put(f"{url}/submission.csv", dataset / source)
        store.write(f"{url}/logs/agent.log", b"log")
        store.write_json(f"{url}/run.json", run_record(seed, source is not None))
    assert mlebench("regrade", GROUP, store=store) == 0
    return store


def run_record(seed: int, made: bool) -> dict[str, Any]:
    who = {"run_group": GROUP, "run_id": f"{GROUP}-diabetes-{seed}", "competition_id": "diabetes", "seed": seed}
    how = {"agent": "mine", "edition": "v1", "backend": "process", "status": "completed", "message": None}
    when = {"started_at": "2026-01-01T00:00:00+00:00", "finished_at": "2026-01-01T00:01:00+00:00"}
    rest = {"exit_code": 0, "duration_seconds": 60.0, "time_limit_seconds": 600.0, "code_fingerprint": "abc"}
    return {"key": f"run-{seed}", **who, **how, **when, **rest, "submission_exists": made}


def mlebench(*arguments: object, store: Store) -> int:
    return main([*map(str, arguments), "--store", store.root])


def grades_of(store: Store, group: str = GROUP) -> pd.DataFrame:
    return read_table(store, "grades", [group]).sort_values(["edition", "seed"]).reset_index(drop=True)
