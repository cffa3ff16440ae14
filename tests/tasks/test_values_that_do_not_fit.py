"""One value that is out of range costs its cell; the rows of other runs and the report are as without it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from storage.runs.folders import RunFolder
from storage.schemas import TABLES, Table
from storage.store import Store
from storage.tables import read_table
from tasks.report import aggregate_group

GROUP = "g"
AT = "2026-01-01T00:00:00+00:00"
FLAGS = ("any_medal", "gold_medal", "silver_medal", "bronze_medal", "above_median", "valid_submission")
FIELDS: dict[str, Any] = {"string": "x", "int64": 7, "float64": 0.5, "bool": True, "timestamp": AT}
EXTREMES: dict[str, Any] = {
    "a huge integer": 10**30,
    "a negative integer": -(10**30),
    "a huge float": 1e300,
    "infinity": float("inf"),
    "negative infinity": float("-inf"),
    "no number": float("nan"),
    "half a character": "\ud800",
    "a NUL": "a\0b",
    "a long text": "x" * 100_000,
    "markup": "<script>alert(1)</script>|\n# a",
    "a time before pandas": "0001-01-01T00:00:00+00:00",
    "a time after pandas": "9999-12-31T23:59:59+00:00",
    "a list": [1],
    "an object": {"a": 1},
    "a truth value": True,
}
IDENTITY = ("run_id", "competition_id", "seed", "agent", "edition")
Files = dict[str, Any]


def _row(table: Table, seed: int) -> dict[str, Any]:
    """A record with all columns of its table."""
    row = {column.name: FIELDS[column.type] for column in TABLES[table]}
    row |= {"run_group": GROUP, "run_id": f"g-{seed}", "competition_id": "digits", "seed": seed, "agent": "a"}
    row |= {"edition": "v1", "complexity": "demo", "category": "Tabular", "outcome": "valid", "status": "completed"}
    return {**row, "is_lower_better": False, "submission_from": None, "leaderboard": None, "files": None}


def _files(seed: int) -> Files:
    """The files of a run as lists of their records."""
    of: dict[str, Table] = {"run": "runs", "grade": "grades", "snapshots": "snapshots", "gateway": "usage"}
    return {
        **{name: [_row(table, seed)] for name, table in of.items()},
        "validation": [{"time": AT, "verdict": "valid"}],
        "logs/validation": [{"at_seconds": 1.0, "score": 0.5, "name": "n", "submitted": True}],
    }


def _write(store: Store, seed: int, files: Files) -> None:
    folder = RunFolder(store, GROUP, "digits", seed)
    for name, rows in files.items():
        lines = [json.dumps(row) for row in rows]
        if name in ("run", "grade"):
            store.write(f"{folder.url}/{name}.json", lines[0].encode())
        elif name == "snapshots":
            store.write(f"{folder.url}/{name}.json", f"[{','.join(lines)}]".encode())
        else:
            store.write(f"{folder.url}/{name}.jsonl", "".join(f"{line}\n" for line in lines).encode())


def _honest(store: Store) -> dict[Table, list[dict[str, Any]]]:
    """The rows of the honest run in the tables of records, as texts."""
    found = {}
    for name in ("runs", "grades", "snapshots", "usage", "validations", "own_validations"):
        table = read_table(store, name)
        found[name] = table[table["run_id"] == "g-0"].astype(str).to_dict("records")
    return found  # type: ignore[return-value]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[Table, list[dict[str, Any]]]:
    store = Store(str(tmp_path_factory.mktemp("alone")))
    for seed in (0, 1):
        _write(store, seed, _files(seed))
    assert aggregate_group(store, GROUP)
    found = _honest(store)
    assert all(found.values())
    return found


def _check(store: Store, alone: dict[Table, list[dict[str, Any]]]) -> None:
    report = aggregate_group(store, GROUP)
    assert report is not None
    assert _texts(_honest(store)) == _texts(alone)
    for url in store.glob("reports/*/*.json"):
        json.loads(store.read(url), parse_constant=pytest.fail)
    assert b"<script>alert(1)" not in store.read(report)


def _texts(rows: dict[Table, list[dict[str, Any]]]) -> dict[Table, list[dict[str, float | str]]]:
    """Numbers without regard to how a column is shown beside missing values: 7 and 7.0."""

    def plain(value: str) -> float | str:
        try:
            return float(value)
        except ValueError:
            return value

    return {name: [{k: plain(v) for k, v in row.items()} for row in table] for name, table in rows.items()}


@pytest.mark.parametrize("extreme", EXTREMES)
def test_in_every_field_that_may_be_missing(
    tmp_path: Path, alone: dict[Table, list[dict[str, Any]]], extreme: str
) -> None:
    store = Store(str(tmp_path))
    _write(store, 0, _files(0))
    needed = {*IDENTITY, "run_group", "complexity", "category", "outcome", "status", "started_at", "created_at"}
    needed |= {*FLAGS, "submission_exists", "is_lower_better", "time", "verdict", "at_seconds"}
    files = {
        name: [{key: value if key in needed else EXTREMES[extreme] for key, value in row.items()} for row in rows]
        for name, rows in _files(1).items()
    }
    _write(store, 1, files)
    _check(store, alone)
    assert set(read_table(store, "runs")["run_id"]) == {"g-0", "g-1"}
    assert set(read_table(store, "grades")["run_id"]) == {"g-0", "g-1"}


@pytest.mark.parametrize("extreme", EXTREMES)
@pytest.mark.parametrize("where", ["identity", "everything"])
def test_in_the_fields_that_say_whose_it_is(
    tmp_path: Path, alone: dict[Table, list[dict[str, Any]]], extreme: str, where: str
) -> None:
    store = Store(str(tmp_path))
    _write(store, 0, _files(0))
    files = {
        name: [
            {key: EXTREMES[extreme] if where == "everything" or key in IDENTITY else v for key, v in row.items()}
            for row in rows
        ]
        for name, rows in _files(1).items()
    }
    _write(store, 1, files)
    _check(store, alone)


@pytest.mark.parametrize("key", IDENTITY)
@pytest.mark.parametrize("extreme", ["a huge integer", "half a character", "a NUL", "markup", "a long text"])
def test_in_one_field_that_says_whose_it_is(
    tmp_path: Path, alone: dict[Table, list[dict[str, Any]]], extreme: str, key: str
) -> None:
    store = Store(str(tmp_path))
    _write(store, 0, _files(0))
    files = {
        name: [{**row, **({key: EXTREMES[extreme]} if key in row else {})} for row in rows]
        for name, rows in _files(1).items()
    }
    _write(store, 1, files)
    _check(store, alone)


@pytest.mark.parametrize("content", ["", "[]", "{}", "5", '"a"', "[5]", "{]", "null", '{"schema_version": 99}'])
@pytest.mark.parametrize("name", ["run.json", "grade.json", "snapshots.json", "gateway.jsonl", "validation.jsonl"])
def test_in_a_file_that_is_no_record(
    tmp_path: Path, alone: dict[Table, list[dict[str, Any]]], name: str, content: str
) -> None:
    store = Store(str(tmp_path))
    for seed in (0, 1):
        _write(store, seed, _files(seed))
    store.write(f"{RunFolder(store, GROUP, 'digits', 1).url}/{name}", content.encode())
    _check(store, alone)


@pytest.mark.parametrize("ctime", [10**400, "NaN", "x", None, [], -1])
def test_in_the_journal_of_an_agent(tmp_path: Path, alone: dict[Table, list[dict[str, Any]]], ctime: Any) -> None:
    store = Store(str(tmp_path))
    for seed in (0, 1):
        files = _files(seed)
        if seed == 1:
            files["run"][0]["agent"] = "aide"
            del files["logs/validation"]
        _write(store, seed, files)
    nodes = [{"is_buggy": False, "metric": {"value": 0.5}, "ctime": each} for each in (ctime, 1.0)]
    journal = f"{RunFolder(store, GROUP, 'digits', 1).url}/logs/1/journal.json"
    store.write(journal, json.dumps({"nodes": nodes}).encode())
    _check(store, alone)
