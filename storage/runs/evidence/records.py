"""Signatures of records that are made after a run: its grades, and copies of it for another run group."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from storage.runs.evidence.chain import Problem, fingerprint
from storage.runs.evidence.signing import sign, signed
from storage.runs.folders import RunFolder
from storage.runs.records import GradeRecord, RunRecord, SnapshotRecord

R = TypeVar("R", GradeRecord, RunRecord)
_BOUND = ("run_group", "competition_id", "seed")


def sign_record(record: R, key: str | None) -> R:
    """The record with its signature; as it is without a key."""
    return record.replace(signature=sign(_text(record.to_json()), key)) if key else record


def snapshots_hash(records: Iterable[SnapshotRecord]) -> str:
    """Hash of graded snapshots, which the record of the grade contains."""
    return digest([record.to_json() for record in records])


def digest(content: Any) -> str:
    """SHA-256 of a JSON value, in which NaN and infinities may occur."""
    return fingerprint(_finite(content))


def check_record(content: Mapping[str, Any], where: str, folder: RunFolder, key: str | None) -> list[Problem]:
    """The problems of a record: it belongs to another folder, or was not signed with the key.

    Args:
        content: the JSON of the record.
        where: name of its file, for the problems.
        folder: the folder that it lies in.
        key: see `storage.runs.evidence.signing`; signatures are not checked if it is None or empty.
    """
    problems = check_place(content, where, folder)
    if key:
        signature = content.get("signature")
        if not signature:
            problems.append(Problem(where, "is not signed, although there is a key: grade again with mlebench regrade"))
        elif not signed(_text(content), str(signature), key):
            problems.append(Problem(where, "was changed, or was not signed with this key"))
    return problems


def check_place(content: Mapping[str, Any], where: str, folder: RunFolder) -> list[Problem]:
    """Problems if a record lies in the folder of another run."""
    return [
        Problem(where, f"is of {name} {content.get(name)!r}, but lies in the folder of {getattr(folder, name)!r}")
        for name in _BOUND
        if content.get(name) != getattr(folder, name)
    ]


def _text(content: Mapping[str, Any]) -> str:
    return "record " + digest({name: value for name, value in content.items() if name != "signature"})


def _finite(value: Any) -> Any:
    """The value with NaN and infinities, which canonical JSON does not have, as texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list) else value
