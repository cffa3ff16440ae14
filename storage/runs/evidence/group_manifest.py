"""The manifest of a run group: what was planned, started and recorded, in a chain to which entries are only appended.

The ledger of a run shows that its files were changed. Only the manifest shows that a whole run was removed, repeated or
brought from elsewhere. Entries are files `manifests/<run_group>/<number>.json`. Each contains the hash of the file
before it, and a signature if there is a key. A file is created only if it does not exist, so that several hosts can
append to one manifest.

Kinds of entries: `planned` (competitions and seeds), `present` (runs from before there was a manifest), `started` (a
try: a new start of an agent), `overwritten` (a result of other conditions is being replaced), `recorded` (a run is
stored), `copied` (a regraded copy of a run of another group).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from storage.exclusive import create
from storage.runs.evidence.signatures import Problem, canonical, fingerprint, sign, signed
from storage.runs.folders import finished_folders
from storage.store import InvalidJson, Store

GENESIS = "0" * 64
"""`prev` of the first entry."""
MAX_SEEDS = 1_000_000
"""Seeds that a plan may have, so that a forged one costs no memory."""


@dataclass(frozen=True)
class GroupManifest:
    """The well-formed entries of a manifest, its problems, and the hash of its last entry."""

    entries: list[dict[str, Any]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    head: str = GENESIS
    unsigned: int = 0
    """Number of first entries that were made before there was a key. The first signed entry contains their hash."""

    def vouched(self) -> set[str]:
        """The hashes of runs that were recorded before there was a key, and that the first signed entry fixes."""
        unsigned = GroupManifest(self.entries[: self.unsigned] if not self.problems else [])
        return {head for heads in unsigned.recorded().values() for head in heads} - {str(None)}

    def recorded(self) -> dict[str, list[str]]:
        """The hashes of the runs that were recorded, in their order, by COMPETITION/SEED."""
        heads: dict[str, list[str]] = {}
        for entry in self.entries:
            if entry.get("kind") in ("recorded", "copied"):
                heads.setdefault(str(entry.get("run")), []).append(str(entry.get("head")))
            elif entry.get("kind") == "present":
                for run, head in dict(entry.get("runs") or {}).items():
                    heads.setdefault(str(run), []).append(str(head))
        return heads

    def planned(self) -> set[str]:
        """The runs that were planned, as COMPETITION/SEED."""
        plans = [entry for entry in self.entries if entry.get("kind") == "planned"]
        return {
            f"{name}/{seed}"
            for plan in plans
            for name in plan["competitions"]
            for seed in plan.get("seed_numbers", range(plan["seeds"]))
        }

    def started(self) -> Counter[str]:
        """The number of times that an agent was started for each run."""
        return Counter(str(entry.get("run")) for entry in self.entries if entry.get("kind") == "started")


def planned_runs(store: Store, run_group: str) -> list[tuple[str, int]]:
    """The runs that a group planned, as pairs of competition and seed, without checking its manifest.

    Empty without a manifest. Entries that cannot be read are left out; `mlebench verify` reports them.
    """
    contents = store.concurrently([partial(store.top.fs.cat_file, path) for path in _paths(store, run_group)])
    entries = [entry for content in contents if (entry := _parse(content)) is not None]
    try:
        runs = [run.rsplit("/", 1) for run in GroupManifest(entries).planned()]
        return sorted((name, int(seed)) for name, seed in runs)
    except (KeyError, TypeError, ValueError):  # an entry of another program
        return []


def append(store: Store, run_group: str, key: str | None, kind: str, **facts: Any) -> None:
    """Append an entry. The first one is preceded by a list of the runs that the group has already.

    A plan that the manifest already has is not repeated, unless it is not signed and there is a key now.
    """
    paths = _paths(store, run_group)
    if not paths and kind != "present":
        append(store, run_group, key, "present", runs=heads_of(store, run_group))
        paths = _paths(store, run_group)
    if kind == "planned" and any(
        entry.get("kind") == kind
        and all(entry.get(name) == value for name, value in facts.items())
        and (not key or signed(_signed_text(entry), str(entry.get("signature")), key))
        for entry in read_manifest(store, run_group, None).entries
    ):
        return
    fs = store.top.fs
    previous_hash = hashlib.sha256(fs.cat_file(paths[-1])).hexdigest() if paths else GENESIS
    number = _number(paths[-1]) + 1 if paths else 0
    while True:
        entry = {"kind": kind, "at": datetime.now(UTC).isoformat(), **facts, "run_group": run_group}
        entry |= {"seq": number, "prev": previous_hash, "id": uuid.uuid4().hex}
        if key:
            entry["signature"] = sign(_signed_text(entry), key)
        path = store.top.path(f"manifests/{run_group}/{number:06d}.json")
        if create(fs, path, canonical(entry), store.top.local):
            return
        previous_hash = hashlib.sha256(fs.cat_file(path)).hexdigest()  # of another process
        number += 1


def read_manifest(store: Store, run_group: str, key: str | None) -> GroupManifest:
    """Read and check a manifest. Without entries it is empty, without problems.

    With a key, all entries must be signed from the first signed one on. Earlier entries were made without a key; the
    signed entries contain their hashes.
    """
    entries: list[dict[str, Any]] = []
    problems: list[Problem] = []
    previous_hash, paths, unsigned = GENESIS, _paths(store, run_group), 0
    for place, path in enumerate(paths):
        content, where = store.top.fs.cat_file(path), f"manifest entry {_number(path)}"
        entry = _parse(content)
        if entry is None:
            problems.append(Problem(where, "was changed: it is no entry of a manifest"))
        else:
            entries.append(entry)
            if entry.get("seq") != place or entry.get("prev") != previous_hash or entry.get("run_group") != run_group:
                problems.append(Problem(where, "does not follow the one before: entries were removed or changed"))
            if key and unsigned == place and not entry.get("signature"):
                unsigned += 1
            elif key and not signed(_signed_text(entry), str(entry.get("signature")), key):
                problems.append(Problem(where, "was not signed with this key"))
        previous_hash = hashlib.sha256(content).hexdigest()
    if paths and unsigned == len(paths):
        description = "has no signed entry, although there is a key: it was made without one, or forged"
        problems.append(Problem("manifest", description))
    return GroupManifest(entries, problems, previous_hash, unsigned)


_SHAPES: dict[str, type | tuple[type, ...]] = {
    "run": str,
    "head": (str, type(None)),
    "runs": dict,
    "competitions": list,
    "seed_numbers": list,
    "seeds": int,
    "differs": list,
}


def _parse(content: bytes) -> dict[str, Any] | None:
    """An entry; None if this program does not write entries of its form."""
    try:
        entry = json.loads(content)
        if canonical(entry) != content:
            return None
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or any(
        name in entry and not isinstance(entry[name], shape) for name, shape in _SHAPES.items()
    ):
        return None
    if entry.get("kind") != "planned":
        return entry
    numbered = "seed_numbers" in entry or 0 <= entry.get("seeds", -1) <= MAX_SEEDS
    return entry if numbered and "competitions" in entry else None


def compare_manifest(
    manifest: GroupManifest, heads: Mapping[str, str | None]
) -> tuple[dict[str, list[Problem]], list[str]]:
    """Compare a manifest with the runs of its group.

    Args:
        manifest: the manifest.
        heads: hash of each run in the store, by COMPETITION/SEED.

    Returns:
        The problems of each run, and notes on runs that are planned or were started and have no record, and on runs
        that were made more than once or overwritten.
    """
    problems: dict[str, list[Problem]] = {}
    recorded, started = manifest.recorded(), manifest.started()
    for run, head in heads.items():
        recorded_heads = recorded.get(run, [])
        if not recorded_heads:
            problems[run] = [Problem("manifest", "does not have this run: it was not made for this group")]
        elif head != recorded_heads[-1]:
            earlier = "an earlier try" if head in recorded_heads else "another run"
            problems[run] = [Problem("manifest", f"names another hash: this is {earlier}, not what was recorded last")]
    for run in recorded.keys() - heads.keys():
        problems[run] = [Problem("run", "is in the manifest, but not in the store: it was removed")]
    notes = [f"{run}: planned, and not recorded" for run in sorted(manifest.planned() - recorded.keys())]
    for run in sorted({*started, *recorded}):
        tries, records = started[run], len(recorded.get(run, []))
        if max(tries, records) > 1:
            notes.append(f"{run}: started {tries} times, recorded {records} times")
    notes += [
        f"{entry.get('run')}: a run was overwritten ({'; '.join(map(str, entry.get('differs') or []))})"
        for entry in manifest.entries
        if entry.get("kind") == "overwritten"
    ]
    return problems, notes


def heads_of(store: Store, run_group: str) -> dict[str, str | None]:
    """The hash of each finished run in the store, by COMPETITION/SEED; None if its record cannot be read."""
    heads: dict[str, str | None] = {}
    for folder in finished_folders(store, run_group):
        head = None
        with contextlib.suppress(InvalidJson, RecursionError):
            content = store.read_json(folder.run_url)
            head = head_of_run(content) if isinstance(content, dict) else None
        heads[f"{folder.competition_id}/{folder.seed}"] = head
    return heads


def head_of_run(content: Mapping[str, Any]) -> str | None:
    """The hash of a run in a manifest: that of its ledger, or of the record of a copy."""
    if content.get("submission_from"):
        return fingerprint({name: value for name, value in content.items() if name != "signature"})
    head = content.get("ledger_head")
    return None if head is None else str(head)


def _signed_text(entry: Mapping[str, Any]) -> str:
    return "manifest " + fingerprint({name: value for name, value in entry.items() if name != "signature"})


def _paths(store: Store, run_group: str) -> list[str]:
    urls = store.glob(f"manifests/{run_group}/*.json")
    return sorted((store.top.path(store.relative(url)) for url in urls), key=_number)


def _number(path: str) -> int:
    name = path.rsplit("/", 1)[-1].removesuffix(".json")
    return int(name) if name.isdecimal() else -1
