"""The ledger of a run: whatever is changed afterwards is a problem, which names the file, the field or the call."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.runs.evidence.ledger import compare_ledger, seal
from storage.runs.evidence.signatures import sign, signed
from storage.runs.folders import RunFolder
from storage.runs.records import RunRecord
from storage.store import Store

CALLS: list[dict[str, Any]] = [{"model": "m", "message": "naïve ☃"}, {"model": "m", "cost_usd": 0.003}]
FILES = {
    "submission.csv": b"id\n",
    "snapshots/12.5.csv": b"id",
    "gateway.jsonl": b"".join(json.dumps(call).encode() + b"\n" for call in CALLS),
}


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, dict[str, Any]]:
    """The content of a ledger, and the JSON of its run's record."""
    top = tmp_path_factory.mktemp("run")
    for name, content in FILES.items():
        (top / name).parent.mkdir(exist_ok=True)
        (top / name).write_bytes(content)
    folder = RunFolder(Store(str(top / "store")), "g", "x", 0)
    record = RunRecord(run_group="g", run_id="g-x-0", competition_id="x", seed=0, agent="a", edition="v1")
    record = record.replace(network="gateway", duration_seconds=3.0)
    record = seal(folder, record, {name: top / name for name in FILES}, None)
    return folder.store.read(f"{folder.url}/ledger.jsonl"), record.to_json()


def problems(
    sealed: tuple[bytes, dict[str, Any]],
    files: dict[str, bytes] = FILES,
    calls: list[dict[str, Any]] = CALLS,
    **fields: object,
) -> list[str]:
    ledger, record = sealed
    hashes = {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}
    journals = {"validation": b"", "gateway": b"".join(json.dumps(call).encode() + b"\n" for call in calls)}
    return [str(each) for each in compare_ledger(ledger, {**record, **fields}, hashes, journals)]


def test_the_ledger_has_the_record_the_calls_and_the_files(sealed: tuple[bytes, dict[str, Any]]) -> None:
    ledger, record = sealed
    lines = [json.loads(line) for line in ledger.splitlines()]
    assert lines[0]["record"].items() <= record.items()
    assert lines[0]["record"]["network"] == "gateway"
    assert [line["call"] for line in lines if line["kind"] == "gateway"] == CALLS
    assert {line["path"]: line["bytes"] for line in lines if line["kind"] == "file"} == {
        path: len(content) for path, content in FILES.items()
    }
    assert (record["ledger_head"], record["ledger_entries"]) == (hashlib.sha256(ledger).hexdigest(), 6)


def test_a_run_that_nobody_changed_has_no_problems(sealed: tuple[bytes, dict[str, Any]]) -> None:
    assert problems(sealed) == []
    assert problems(sealed, ledger_signature="1") == []


def test_a_problem_names_the_file_the_field_or_the_call(sealed: tuple[bytes, dict[str, Any]]) -> None:
    assert problems(sealed, calls=CALLS[:1]) == ["gateway calls: the log has 1, the ledger 2"]
    assert problems(sealed, calls=[CALLS[0], {}]) == ["gateway calls: number 2 differs from the ledger"]
    assert problems(sealed, network="open") == ['run.json: network is "open", the ledger says "gateway"']
    assert problems(sealed, planted=None) == ["run.json: planted is null, the ledger says missing"]
    assert problems(sealed, ledger_entries=7) == ["run.json: ledger_entries is 7, the ledger has 6 lines"]
    assert problems(sealed, files={}) == [f"{path}: is missing" for path in sorted(FILES)]
    changed = problems(sealed, files={**FILES, "submission.csv": b"", "more.py": b""})
    assert [each.partition(":")[0] for each in changed] == ["submission.csv", "more.py"]


@given(st.data())
@settings(max_examples=300)
def test_any_changed_ledger_is_told(sealed: tuple[bytes, dict[str, Any]], data: st.DataObject) -> None:
    ledger, record = sealed
    start = data.draw(st.integers(0, len(ledger)))
    end = data.draw(st.integers(start, len(ledger)))
    changed = ledger[:start] + data.draw(st.binary(max_size=3)) + ledger[end:]
    told = [each for each in problems((changed, record)) if each.startswith("ledger.jsonl: was changed")]
    assert bool(told) == (changed != ledger)


def test_a_ledger_that_was_made_again_is_not_the_recorded_one(sealed: tuple[bytes, dict[str, Any]]) -> None:
    ledger, record = sealed
    forged = ledger.replace(b'"network":"gateway"', b'"network":"open"')
    (problem,) = problems((forged, record), network="open")
    assert problem.startswith("ledger.jsonl: was changed")


def test_a_signature_needs_the_key() -> None:
    assert signed("ab", sign("ab", "key"), "key")
    assert not signed("ab", sign("ab", "other key"), "key")
    assert not signed("cd", sign("ab", "key"), "key")
