"""The evidence ledger of a run: written when the run is recorded, checked by `mlebench verify`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.jsonlines import parse
from common.settings import get_settings
from storage.runs.evidence.chain import Problem, chain, check_chain, head_of, sign, signed, to_bytes
from storage.runs.evidence.content import SEAL, compare, evidence
from storage.store import Store
from storage.tables import read_table

LEDGER = "ledger.jsonl"
_JOURNALS = {"validation": "validation.jsonl", "gateway": "gateway.jsonl"}
_MADE_LATER = ("run.json", LEDGER, "snapshots.json")
"""In a run's folder, but no evidence: grading makes them anew at any time, or they hold the seal."""
_CHUNK = 1024**2


def seal(store: Store, url: str, record: Mapping[str, Any], files: Mapping[str, Path]) -> dict[str, Any]:
    """Write the ledger of a run that is about to be recorded; returns the fields that its record gets.

    Args:
        store: where the run lies.
        url: of its folder.
        record: all that is to be in its record besides.
        files: every file in its folder by path, as it lies on this machine.
    """
    hashes = {name: _hashed(path) for name, path in files.items()}
    calls = {kind: list(parse(files[name].read_bytes())) if name in files else [] for kind, name in _JOURNALS.items()}
    entries = chain(evidence(record, hashes, calls["validation"], calls["gateway"]))
    store.write(f"{url}/{LEDGER}", to_bytes(entries))
    head = head_of(entries)
    fields: dict[str, Any] = {"ledger_head": head, "ledger_entries": len(entries)}
    key = get_settings().ledger_key.get_secret_value()
    return {**fields, "ledger_signature": sign(head, key)} if key else fields


def verify_run(store: Store, url: str, listed_head: str | None = None) -> list[Problem]:
    """Recompute a run's ledger and compare it with what the store holds; nothing if all agrees.

    Args:
        store: where the run lies.
        url: of its folder.
        listed_head: the head that `tables/runs` has; None where the table does not know the run.
    """
    record, problems = _record(store, url)
    if record.get("submission_from"):
        return problems + _verify_copy(store, record)
    if not record:
        return problems
    if not store.exists(f"{url}/{LEDGER}"):
        missing = "is missing" if record.get("ledger_head") else "is missing: recorded before there were ledgers?"
        return [*problems, Problem("ledger", missing)]
    head = record.get("ledger_head")
    entries, broken = check_chain(_read(store, f"{url}/{LEDGER}"), head or "", record.get("ledger_entries"))
    problems += broken + _signature(record)
    if listed_head is not None and listed_head != head:
        problems.append(Problem("tables/runs", f"has the head {listed_head[:12]}, run.json {str(head)[:12]}"))
    found = {store.relative(each).removeprefix(store.relative(url) + "/"): each for each in _files(store, url)}
    digests = {
        path: _digest(store, each)
        for path, each in sorted(found.items())
        if path not in _MADE_LATER and not (path.startswith("grade") and path.endswith(".json"))
    }
    journals = {
        kind: list(parse(_read(store, found[name]))) if name in found else [] for kind, name in _JOURNALS.items()
    }
    return problems + compare(entries, record, digests, journals)


def verify_group(store: Store, run_group: str) -> dict[str, list[Problem]]:
    """What disagrees, by run (`COMPETITION/SEED`); a run without problems has an empty list.

    A run that the table knows and the store no longer has is a problem too.
    """
    table = read_table(store, "runs", [run_group])
    listed = {}
    if len(table) and "ledger_head" in table:
        rows = table[table["ledger_head"].notna()].to_dict("records")
        listed = {f"{row['competition_id']}/{row['seed']}": str(row["ledger_head"]) for row in rows}
    urls = [url.removesuffix("/run.json") for url in store.glob(f"runs/{run_group}/*/*/run.json")]
    names = {"/".join(url.rsplit("/", 2)[1:]): url for url in urls}
    results = {name: verify_run(store, url, listed.get(name)) for name, url in names.items()}
    gone = {name: [Problem("run", "is in tables/runs, but not in the store")] for name in listed if name not in names}
    return results | gone


def _record(store: Store, url: str) -> tuple[dict[str, Any], list[Problem]]:
    """run.json, empty if it cannot be read, and whether it is as it was written."""
    if not store.exists(f"{url}/run.json"):
        return {}, [Problem("run.json", "is missing")]
    content = _read(store, f"{url}/run.json")
    try:
        record = json.loads(content)
    except ValueError:
        record = None
    if not isinstance(record, dict):
        return {}, [Problem("run.json", "was changed: it is no JSON object")]
    as_written = store.json_bytes(record) == content
    return record, [] if as_written else [Problem("run.json", "was changed: it is not laid out as it was written")]


def _verify_copy(store: Store, record: dict[str, Any]) -> list[Problem]:
    """A regraded run: its evidence lies with the run itself, from which it must not differ."""
    source = str(record["submission_from"])
    original, problems = _record(store, source)
    if original and not original.get("submission_from"):
        problems = verify_run(store, source)
        problems += (
            Problem("run.json", f"{name} is {record.get(name)!r}, the run itself has {original.get(name)!r}")
            for name in sorted({*record, *original} - {"run_group", "edition", "submission_from"})
            if record.get(name) != original.get(name)
        )
    elif original:
        problems.append(Problem("run.json", "is a copy too"))
    return [Problem(f"{store.relative(source)}: {each.where}", each.what) for each in problems]


def _signature(record: Mapping[str, Any]) -> list[Problem]:
    key = get_settings().ledger_key.get_secret_value()
    signature = record.get(SEAL[2])
    if not key:
        return []
    if not signature:
        return [Problem("signature", "is missing, although MLEBENCH_LEDGER_KEY is set")]
    genuine = signed(str(record.get("ledger_head")), str(signature), key)
    return [] if genuine else [Problem("signature", "was not made with MLEBENCH_LEDGER_KEY")]


def _files(store: Store, url: str) -> list[str]:
    fs, path = store.top.fs, store.top.path(store.relative(url))
    prefix = len(store.top.root) + 1
    return [store.url(str(each)[prefix:]) for each in fs.find(path)]


def _read(store: Store, url: str) -> bytes:
    content: bytes = store.top.fs.cat_file(store.top.path(store.relative(url)))
    return content


def _digest(store: Store, url: str) -> str:
    digest = hashlib.sha256()
    with store.top.fs.open(store.top.path(store.relative(url)), "rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _hashed(path: Path) -> tuple[str, int]:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), path.stat().st_size
