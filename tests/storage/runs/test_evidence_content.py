"""What a ledger says of a run, and how it is held against the store."""

from __future__ import annotations

from typing import Any

import pytest

from storage.runs.evidence.chain import chain
from storage.runs.evidence.content import compare, evidence

RECORD = {"run_id": "g-x-0", "competition_id": "x", "seed": 0, "agent": "a", "backend": "docker", "network": "gateway"}
RECORD |= {"image_digest": "sha256:1", "started_at": "t0", "finished_at": "t1", "duration_seconds": 3.0}
FILES = {"submission.csv": ("aa", 3), "snapshots/12.5.csv": ("bb", 2), "gateway.jsonl": ("cc", 9)}
CALLS = [{"model": "m", "started_at": "t0"}, {"model": "m", "started_at": "t1"}]


@pytest.fixture
def entries() -> list[dict[str, Any]]:
    return chain(evidence(RECORD, FILES, [], CALLS))


def problems(entries: list[dict[str, Any]], record: Any = RECORD, found: Any = None, calls: Any = CALLS) -> list[str]:
    hashes = {path: digest for path, (digest, _) in FILES.items()} if found is None else found
    return [str(each) for each in compare(entries, record, hashes, {"validation": [], "gateway": calls})]


def test_a_snapshot_carries_its_time(entries: list[dict[str, Any]]) -> None:
    (snapshot,) = (entry for entry in entries if entry["kind"] == "snapshot")
    assert (snapshot["at_seconds"], snapshot["sha256"]) == (12.5, "bb")


def test_network_image_and_calls_are_recorded(entries: list[dict[str, Any]]) -> None:
    assert entries[1] | {"network": "gateway", "image_digest": "sha256:1"} == entries[1]
    assert [entry["call"] for entry in entries if entry["kind"] == "gateway"] == CALLS


def test_the_seal_in_the_record_changes_nothing(entries: list[dict[str, Any]]) -> None:
    assert problems(entries) == []
    assert problems(entries, {**RECORD, "ledger_head": "0", "ledger_signature": "1", "ledger_entries": 2}) == []


def test_differences_name_the_place(entries: list[dict[str, Any]]) -> None:
    assert problems(entries, calls=CALLS[:1]) == ["gateway calls: the log has 1, the ledger 2"]
    assert problems(entries, calls=[CALLS[0], {}]) == ["gateway calls: number 2 differs from the ledger"]
    assert problems(entries, {**RECORD, "network": "open"}) == [
        "run.json: network is 'open', the ledger says 'gateway'"
    ]
    assert len(problems(entries, {**RECORD, "duration_seconds": 4.0})) == 1
    assert len(problems(entries, found={})) == len(FILES)
