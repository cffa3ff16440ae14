"""The ledger of a run, `ledger.jsonl`: its record, its calls of services, and the hash of each of its files.

It is written once, when the run is recorded. The record then contains the hash of the ledger and its signature (the
seal). Without the key, nobody can change a file, the record or the ledger later and make them agree.

The lines are JSON in canonical form: one of kind `run` with the record without its seal, then one for each validation,
each call of the scorer, each request for a public score, each call of a model (`gateway`) and each `file`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.jsonlines import parse
from storage.runs.evidence.signatures import Problem, canonical, sign
from storage.runs.files import EVIDENCE, PUBLIC_SCORE_CALLS, REQUESTS, RUN, SCORINGS, VALIDATIONS
from storage.runs.folders import RunFolder
from storage.runs.records import RunRecord

SEAL = ("ledger_head", "ledger_entries", "ledger_signature")
"""Fields of the run's record about its ledger. The ledger contains all other fields."""
JOURNALS = {
    "validation": VALIDATIONS,
    "scorer": SCORINGS,
    "public_score": PUBLIC_SCORE_CALLS,
    "gateway": REQUESTS,
}
"""The log of each service, by the kind of the ledger's lines about its calls."""


def seal(folder: RunFolder, record: RunRecord, files: Mapping[str, Path], key: str | None) -> RunRecord:
    """Write the ledger of a run that is about to be recorded. Returns its record with the seal.

    Args:
        folder: folder of the run.
        record: the complete record, without the seal.
        files: local path of every file, by its path in the folder.
        key: signing key; no signature if it is None or empty.
    """
    journals = {kind: files[name].read_bytes() if name in files else b"" for kind, name in JOURNALS.items()}
    lines = [{"kind": "run", "record": _without_seal(record.to_json())}]
    lines += ({"kind": kind, "call": call} for kind, journal in journals.items() for call in parse(journal))
    lines += ({"kind": "file", "path": name, **_hash_and_size(path)} for name, path in sorted(files.items()))
    content = b"".join(canonical(line) + b"\n" for line in lines)
    folder.store.write(f"{folder.files_url}/{EVIDENCE}", content)
    head = hashlib.sha256(content).hexdigest()
    sealed = record.replace(ledger_head=head, ledger_entries=len(lines))
    return sealed.replace(ledger_signature=sign(head, key)) if key else sealed


def compare_ledger(
    ledger: bytes, record: Mapping[str, Any], hashes: Mapping[str, str], journals: Mapping[str, bytes]
) -> list[Problem]:
    """Compare a ledger with the store.

    Args:
        ledger: content of the ledger.
        record: JSON form of the run's record.
        hashes: SHA-256 of each file of the run, by its path in the folder.
        journals: content of the log of each service, by the keys of `JOURNALS`.
    """
    problems = []
    head, recorded_head = hashlib.sha256(ledger).hexdigest(), str(record.get("ledger_head"))
    if head != recorded_head:
        problems.append(Problem(EVIDENCE, f"was changed: SHA-256 is {head[:12]}, {RUN} has {recorded_head[:12]}"))
    count = ledger.count(b"\n")
    if count != record.get("ledger_entries"):
        problems.append(Problem(RUN, f"ledger_entries is {record.get('ledger_entries')}, the ledger has {count} lines"))
    lines = list(parse(ledger))
    files = {str(line.get("path")): str(line.get("sha256")) for line in lines if line.get("kind") == "file"}
    for path, digest in files.items():
        if path not in hashes:
            problems.append(Problem(path, "is missing"))
        elif hashes[path] != digest:
            problems.append(Problem(path, f"was changed: SHA-256 is {hashes[path][:12]}, recorded is {digest[:12]}"))
    problems += (Problem(path, "was added: it is not in the ledger") for path in hashes if path not in files)
    for kind, journal in journals.items():
        calls, recorded_calls = list(parse(journal)), [line.get("call") for line in lines if line.get("kind") == kind]
        if calls != recorded_calls:
            problems.append(Problem(f"{kind} calls", _first_difference(calls, recorded_calls)))
    recorded = next((line.get("record") for line in lines if line.get("kind") == "run"), None)
    return problems + _changed_fields(_without_seal(record), recorded if isinstance(recorded, dict) else {})


def _changed_fields(record: Mapping[str, Any], recorded: Mapping[str, Any]) -> list[Problem]:
    values = {name: (_as_text(record, name), _as_text(recorded, name)) for name in sorted({*record, *recorded})}
    return [
        Problem(RUN, f"{name} is {now}, the ledger says {before}")
        for name, (now, before) in values.items()
        if now != before
    ]


def _as_text(record: Mapping[str, Any], name: str) -> str:
    return canonical(record[name]).decode() if name in record else "missing"


def _first_difference(calls: list[dict[str, Any]], recorded: list[Any]) -> str:
    if len(calls) != len(recorded):
        return f"the log has {len(calls)}, the ledger {len(recorded)}"
    number = next(number for number, (a, b) in enumerate(zip(calls, recorded, strict=True), 1) if a != b)
    return f"number {number} differs from the ledger"


def _without_seal(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in SEAL}


def _hash_and_size(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {"sha256": hashlib.file_digest(file, "sha256").hexdigest(), "bytes": path.stat().st_size}
