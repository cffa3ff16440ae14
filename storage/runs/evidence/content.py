"""The content of a run's evidence, and its comparison with the store."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from storage.runs.evidence.chain import Problem, fingerprint
from storage.runs.folders import RUN

SEAL = ("ledger_head", "ledger_entries", "ledger_signature")
"""Fields of the run's record that identify its evidence. The evidence covers all other fields."""
_IDENTITY = ("run_group", "run_id", "competition_id", "seed", "agent", "code_fingerprint", "edition", "key")
_RESOURCES = ("time_limit_seconds", "cpus", "memory_bytes", "disk_bytes", "gpus")
_WORLD = ("backend", "network", "runtime", "image", "image_digest", "obfuscated")
_SNAPSHOT = re.compile(r"snapshots/(\d+(?:\.\d+)?)\.csv")


def evidence(
    record: Mapping[str, Any],
    files: Mapping[str, tuple[str, int]],
    validations: Iterable[Mapping[str, Any]] = (),
    calls: Iterable[Mapping[str, Any]] = (),
) -> list[dict[str, Any]]:
    """The entries of a run's evidence, before they are chained.

    Args:
        record: JSON form of the run's record.
        files: SHA-256 and bytes by path in the run's folder.
        validations: log of the validation service.
        calls: log of the LLM gateway.
    """
    begun = {name: record[name] for name in _IDENTITY if name in record}
    entries = [{"kind": "begin", "at": record.get("started_at"), **begun}]
    entries.append({"kind": "conditions", **{n: record[n] for n in (*_WORLD, *_RESOURCES) if n in record}})
    entries += ({"kind": "validation", "call": dict(call)} for call in validations)
    entries += ({"kind": "gateway", "call": dict(call)} for call in calls)
    for path, (digest, size) in sorted(files.items()):
        at = _SNAPSHOT.fullmatch(path)
        more = {"kind": "snapshot", "at_seconds": float(at[1])} if at else {"kind": "file"}
        entries.append({**more, "path": path, "sha256": digest, "bytes": size})
    entries.append({"kind": "end", "at": record.get("finished_at"), "record": record_hash(record)})
    return entries


def record_hash(record: Mapping[str, Any]) -> str:
    """Hash of a run's record without its seal."""
    return fingerprint({name: value for name, value in record.items() if name not in SEAL})


def files_of(entries: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """SHA-256 by path of the files that the evidence covers."""
    return {str(e.get("path")): str(e.get("sha256")) for e in entries if e.get("kind") in ("file", "snapshot")}


def compare(
    entries: list[dict[str, Any]],
    record: Mapping[str, Any],
    found: Mapping[str, str],
    journals: Mapping[str, list[dict[str, Any]]],
) -> list[Problem]:
    """Compare the entries of an intact chain with the store.

    Args:
        entries: the evidence.
        record: current JSON form of the run's record.
        found: SHA-256 by path of the current files in the run's folder.
        journals: current logs of the services by kind of entry (`validation`, `gateway`).
    """
    problems = []
    known = files_of(entries)
    for path, digest in known.items():
        if path not in found:
            problems.append(Problem(path, "is missing"))
        elif found[path] != digest:
            problems.append(Problem(path, f"was changed: SHA-256 is {found[path][:12]}, recorded is {digest[:12]}"))
    problems += (Problem(path, "was added: it is not in the ledger") for path in found if path not in known)
    for kind, calls in journals.items():
        recorded = [entry.get("call") for entry in entries if entry.get("kind") == kind]
        if recorded != calls:
            problems.append(Problem(f"{kind} calls", _calls(recorded, calls)))
    for kind, names in (("begin", _IDENTITY), ("conditions", (*_WORLD, *_RESOURCES))):
        entry = next((each for each in entries if each.get("kind") == kind), {})
        problems += (
            Problem(RUN, f"{name} is {record.get(name)!r}, the ledger says {entry.get(name)!r}")
            for name in names
            if record.get(name) != entry.get(name)
        )
    end = next((entry for entry in entries if entry.get("kind") == "end"), {})
    if end.get("record") != record_hash(record) and not any(each.where == RUN for each in problems):
        problems.append(Problem(RUN, "was changed: its content differs from the ledger"))
    return problems


def _calls(recorded: list[Any], calls: list[dict[str, Any]]) -> str:
    if len(recorded) != len(calls):
        return f"the log has {len(calls)}, the ledger {len(recorded)}"
    first = next(place for place, (a, b) in enumerate(zip(recorded, calls, strict=True), 1) if a != b)
    return f"number {first} differs from the ledger"
