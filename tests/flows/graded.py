"""A store with a finished and graded run group, for the commands around grading."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd
import pytest

from competitions import registry
from flows.cli import main
from storage.datasets import prepare
from storage.tables import read_table
from tests.bundles import bundle
from tests.stores import KeptStore, Store, copy_dataset

GROUP = "group"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("dataset")
    competition = registry.get("diabetes")
    (root / "raw.zip").write_bytes(bundle(competition.id))
    prepare(competition.id, root / "raw.zip", root / "diabetes")
    return root / "diabetes"


@pytest.fixture(scope="module")
def graded(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> KeptStore:
    return KeptStore(grade_group(Store(str(tmp_path_factory.mktemp("graded") / "store")), dataset))


@pytest.fixture
def group(graded: KeptStore) -> Iterator[Store]:
    """A store in which `GROUP` has run three seeds of diabetes: perfect, the sample, and no submission."""
    with graded.copied() as store:
        yield store


def grade_group(store: Store, dataset: Path) -> Store:
    """Put the runs of `GROUP` into a store, and grade them."""
    for edition in ("v1", "v2"):
        copy_dataset(store, "diabetes", dataset, edition)
    facts = registry.get("diabetes").facts.files
    for seed, source in enumerate((facts.gold_submission, facts.sample_submission, None)):
        url = store.run(GROUP, "diabetes", seed)
        if source:
            store.put(f"{url}/submission.csv", dataset / source)
        store.write(f"{url}/logs/agent.log", b"log")
        store.write_json(f"{url}/run.json", run_record(seed, source is not None))
    regrade(store)
    return store


def regrade(store: Store) -> None:
    """Grade `GROUP`. What a command sets for those that it starts ends with it, as it does in a test."""
    with patch.dict(os.environ):
        assert mlebench("regrade", GROUP, store=store) == 0


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
