"""Case g: `mlebench prepare` when every competition is already prepared."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.measure import Case, best
from competitions import registry
from storage.dataset import Dataset
from storage.datasets.commit import MARKER
from storage.datasets.current import make_current
from storage.datasets.job import recipe_of
from storage.datasets.verify import VERIFIED, verified_record
from storage.sources.local import Local
from storage.store import Store


def case(work: Path) -> Case:
    """Seconds of the whole command, over a store in which all datasets are committed and verified."""
    store, raw = work / "rerun-store", work / "rerun-raw"
    raw.mkdir(parents=True)
    ids = sorted({*registry.list("all"), *registry.list("dev")})
    for competition_id in ids:
        _commit(store, raw, competition_id)
    command = [sys.executable, "-m", "flows.cli", "prepare", "--all", "--split", "dev"]
    command += ["--store", str(store), "--raw-dir", str(raw)]

    def rerun() -> str:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    sample = best(rerun, 3)
    if not sample.value.startswith(f"{len(ids)} reused"):
        raise RuntimeError(f"not everything was reused: {sample.value}")
    about = f"a cached rerun of all {len(ids)} competitions (the ratio is seconds; the target is a limit)"
    return Case("g", about, sample.seconds, 5, sample, files=len(ids))


def _commit(store: Path, raw: Path, competition_id: str) -> None:
    """Write the files of a prepared dataset that a rerun reads."""
    competition = registry.get(competition_id)
    (raw / f"{competition_id}.zip").write_bytes(b"")
    source = Local(raw)
    record = {
        "hash": competition_id, "md5": "", "bytes": 0, "source": source.name, "version": source.version(competition),
        "at": "",
    }  # fmt: skip
    prepared_store, recipe = Store(str(store)), recipe_of(competition, competition_id, "v1")
    dataset = Dataset("v1", competition_id, recipe.key)
    prepared_store.write_json(prepared_store.url("raw", competition_id, "download.json"), record)
    prepared_store.write_json(f"{prepared_store.prepared(dataset)}/{VERIFIED}", verified_record(dataset, competition))
    prepared_store.write_json(f"{prepared_store.prepared(dataset)}/{MARKER}", {"key": dataset.key})
    make_current(prepared_store, dataset, recipe)
