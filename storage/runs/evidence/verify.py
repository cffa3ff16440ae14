"""Compare a run group with its evidence, for `mlebench verify`: the ledgers of its runs, its manifest, signatures."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from competitions import registry
from storage.runs.evidence.group_manifest import GroupManifest, compare_manifest, head_of_run, heads_of, read_manifest
from storage.runs.evidence.ledger import JOURNALS, compare_ledger
from storage.runs.evidence.signatures import Problem, check_identity, check_record, fingerprint, signed
from storage.runs.files import EVIDENCE, RUN, TRY, is_grade, is_seed
from storage.runs.folders import RunFolder, finished_folders, graded_folders
from storage.runs.records import RecordError, RunRecord
from storage.store import InvalidJson, Store
from storage.tables import read_table

_NOT_IN_LEDGER = (RUN, EVIDENCE)
_READ_BYTES = 1024**2
_SHAPES = {"ledger_head": str, "ledger_entries": int, "files": str, "submission_from": str, "schema_version": int}
_COPY_DIFFERS = {"run_group", "edition", "submission_from", "schema_version", "dataset_key", "signature"}
"""Fields in which a regraded copy may differ from its original run."""


def verify_run(
    folder: RunFolder, key: str | None, listed_head: str | None = None, vouched: Collection[str] = ()
) -> list[Problem]:
    """Compare a run with its ledger. Returns an empty list if everything agrees.

    Args:
        folder: folder of the run.
        key: key for checking signatures; they are not checked if it is None or empty.
        listed_head: head in `tables/runs`; None if the run is not in the table.
        vouched: heads of runs that need no signature; see `GroupManifest.vouched`.
    """
    try:
        return _verify_run(folder, key, listed_head, vouched)
    except RecursionError:
        return [Problem("record", "was changed: it is nested too deeply")]


def _verify_run(folder: RunFolder, key: str | None, listed_head: str | None, vouched: Collection[str]) -> list[Problem]:
    record, problems = _record(folder)
    store, url = folder.store, replace(folder, files=str(record.get("files") or "")).files_url
    problems += _verify_grades(folder, key)
    if record.get("submission_from"):
        needed = None if _is_vouched(record, head_of_run(record), vouched) else key
        return problems + check_record(record, RUN, folder, needed) + _verify_copy(store, record, key)
    if not record:
        return problems
    problems += check_identity(record, RUN, folder)
    head = record.get("ledger_head")
    problems += _signature(record, key, vouched)
    if listed_head is not None and listed_head != head:
        problems.append(Problem("tables/runs", f"has the head {listed_head[:12]}, {RUN} {str(head)[:12]}"))
    prefix = store.relative(url) + "/"
    urls = {store.relative(file_url).removeprefix(prefix): file_url for file_url in _files(store, url)}
    if EVIDENCE not in urls:
        return [*problems, Problem(EVIDENCE, "is missing")]
    hashes = {
        path: _sha256(store, file_url)
        for path, file_url in sorted(urls.items())
        if path not in _NOT_IN_LEDGER
        and not is_grade(path)  # made later
        and not path.startswith(TRY)  # of another process, which lost its lease or is at work
    }
    journals = {kind: store.read(urls[name]) if name in urls else b"" for kind, name in JOURNALS.items()}
    return problems + compare_ledger(store.read(urls[EVIDENCE]), record, hashes, journals)


@dataclass(frozen=True)
class GroupVerification:
    """The result of verifying a run group."""

    problems: dict[str, list[Problem]]
    """The problems of each run (`COMPETITION/SEED`), which may be an empty list, and those of the `manifest`."""
    manifest: GroupManifest
    notes: list[str]
    """What the manifest says of runs and is no problem; see `compare_manifest`."""


def verify_group(store: Store, run_group: str, key: str | None) -> GroupVerification:
    """Verify the runs of a group, its grades and its manifest. `key` as in `verify_run`.

    A run that is in the table but no longer in the store is a problem too, and so is a grade without a run. There are
    no problems, not even empty lists, if the group has no runs.
    """
    table = read_table(store, "runs", [run_group])
    rows = table[table["ledger_head"].notna()].to_dict("records") if len(table) else []
    listed_heads = {f"{row['competition_id']}/{row['seed']}": str(row["ledger_head"]) for row in rows}
    folders = {f"{folder.competition_id}/{folder.seed}": folder for folder in finished_folders(store, run_group)}
    if folders:  # a group of imported grades has no runs
        graded = {f"{folder.competition_id}/{folder.seed}": folder for folder in graded_folders(store, run_group)}
        folders = {**graded, **folders}
    manifest = read_manifest(store, run_group, key)
    vouched, heads = manifest.vouched(), heads_of(store, run_group)
    problems: defaultdict[str, list[Problem]] = defaultdict(list)
    for name, folder in folders.items():
        problems[name] += verify_run(folder, key, listed_heads.get(name), vouched)
    notes: list[str] = []
    if manifest.entries or manifest.problems:
        of_runs, notes = compare_manifest(manifest, heads)
        for name, of_run in of_runs.items():
            problems[name] += of_run
        if manifest.problems:
            problems["manifest"] += manifest.problems
    elif heads:
        problems["manifest"].append(Problem("manifest", "is missing"))
    for name in listed_heads.keys() - folders.keys():
        problems[name].append(Problem("run", "is in tables/runs, but not in the store"))
    return GroupVerification(dict(problems), manifest, notes)


def find_unexpected(store: Store, run_group: str) -> dict[str, Problem]:
    """Files and folders in the folder of a run group that do not belong to its runs, by their path in it.

    The folder of a group contains folders of competitions, and these contain folders of seeds. The evidence covers
    deeper files. Competitions must be those of the catalog, or variants of them, because other runs cannot be
    graded.
    """
    top = store.top.path(f"runs/{run_group}")
    contents = store.top.fs.find(top, maxdepth=2, withdirs=True, detail=True)
    kinds: dict[str, str] = {}
    for path, facts in sorted(contents.items()):  # consoles of S3 make folders as objects whose names end in a slash
        kind = "directory" if path.endswith("/") else facts["type"]
        kinds.setdefault(path.removeprefix(top).strip("/"), kind)
    competitions = registry.folders()
    unexpected: dict[str, Problem] = {}
    for path, kind in sorted(kinds.items()):
        competition_id, _, seed = path.partition("/")
        if not path or competition_id in unexpected:
            continue
        if kind != "directory":
            unexpected[path] = Problem("file", "is not part of the group: only folders of runs are")
        elif seed and not is_seed(seed):
            unexpected[path] = Problem("folder", "is not part of the group: its name is not a seed")
        elif competition_id not in competitions and not registry.is_variant(competition_id):
            text = "is not part of the group: the catalog has no such competition, and MLEBENCH_COMPETITIONS names none"
            unexpected[path] = Problem("folder", text)
    return unexpected


def _record(folder: RunFolder) -> tuple[dict[str, Any], list[Problem]]:
    """The content of the run's record (empty if it cannot be read), and problems with its format.

    It is not converted to a `RunRecord`, because the hash covers the content of the file. Fields that are read for
    verifying have the right type, and the others can be hashed.
    """
    store = folder.store
    if not folder.finished():
        return {}, [Problem(RUN, "is missing")]
    content = store.read(folder.run_url)
    try:
        record = json.loads(content)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        return {}, [Problem(RUN, "was changed: it is not a JSON object")]
    for name, shape in _SHAPES.items():
        if not isinstance(record.get(name), shape | None):
            return {}, [Problem(RUN, f"was changed: {name} is of another type")]
    as_written = store.json_bytes(record) == content
    return record, [] if as_written else [Problem(RUN, "was changed: it is not formatted as it was written")]


def _verify_grades(folder: RunFolder, key: str | None) -> list[Problem]:
    """Verify the grades of a run in all editions, and their snapshots."""
    store, problems = folder.store, []
    for url in store.glob(f"{store.relative(folder.url)}/grade*.json"):
        name = url.rsplit("/", 1)[1]
        snapshots_name = name.replace("grade", "snapshots", 1)
        try:
            content = store.read_json(url)
            rows = store.read_json(f"{folder.url}/{snapshots_name}") or []
        except InvalidJson as error:
            problems.append(Problem(name, f"was changed: {error}"))
            continue
        if not isinstance(content, dict):
            problems.append(Problem(name, "was changed: it is not a JSON object"))
            continue
        problems += check_record(content, name, folder, key)
        if (rows or "snapshots_hash" in content) and content.get("snapshots_hash") != fingerprint(rows):
            problems.append(Problem(snapshots_name, f"differs from what {name} says"))
    for url in store.glob(f"{store.relative(folder.url)}/snapshots*.json"):
        name = url.rsplit("/", 1)[1]
        if not store.exists(f"{folder.url}/{name.replace('snapshots', 'grade', 1)}"):
            problems.append(Problem(name, "has no grade that it belongs to: grade the run again"))
    return problems


def _verify_copy(store: Store, record: dict[str, Any], key: str | None) -> list[Problem]:
    """Verify a regraded copy: it must not differ from the original run, whose evidence is verified."""
    source = str(record["submission_from"])
    folder = RunFolder.at(store, source)
    if folder is None:
        return [Problem(RUN, f"is a copy of {source}, which is not a run in this store")]
    original, problems = _record(folder)
    if original and not original.get("submission_from"):
        # The copy has its own grade.
        problems = [problem for problem in verify_run(folder, key) if not is_grade(problem.where)]
        problems += _differences(record, original)
    elif original:
        problems.append(Problem(RUN, "is a copy itself"))
    return [Problem(f"{store.relative(source)}: {problem.where}", problem.what) for problem in problems]


def _differences(copy: dict[str, Any], original: dict[str, Any]) -> list[Problem]:
    """Fields in which a copy differs, compared as records."""
    try:
        copy_values, original_values = (RunRecord.from_json(content, RUN).model_dump() for content in (copy, original))
    except RecordError as error:
        return [Problem(RUN, str(error))]
    return [
        Problem(RUN, f"{name} is {copy_values.get(name)!r}, the original run has {original_values.get(name)!r}")
        for name in sorted({*copy_values, *original_values} - _COPY_DIFFERS)
        if copy_values.get(name) != original_values.get(name)
    ]


def _is_vouched(record: Mapping[str, Any], head: object, vouched: Collection[str]) -> bool:
    return not record.get("signature") and not record.get("ledger_signature") and str(head) in vouched


def _signature(record: Mapping[str, Any], key: str | None, vouched: Collection[str]) -> list[Problem]:
    signature = record.get("ledger_signature")
    if not key or _is_vouched(record, record.get("ledger_head"), vouched):
        return []
    if not signature:
        return [Problem("signature", "is missing, although MLEBENCH_LEDGER_KEY is set")]
    genuine = signed(str(record.get("ledger_head")), str(signature), key)
    return [] if genuine else [Problem("signature", "was not made with MLEBENCH_LEDGER_KEY")]


def _files(store: Store, url: str) -> list[str]:
    fs, path = store.top.fs, store.top.path(store.relative(url))
    prefix = len(store.top.root) + 1
    return [store.url(str(file_path)[prefix:]) for file_path in fs.find(path)]


def _sha256(store: Store, url: str) -> str:
    digest = hashlib.sha256()
    with store.top.fs.open(store.top.path(store.relative(url)), "rb") as file:
        while block := file.read(_READ_BYTES):
            digest.update(block)
    return digest.hexdigest()
