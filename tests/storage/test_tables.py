"""Tables: the files of all run groups agree, whatever their values, and are read together."""

from __future__ import annotations

import io
import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.columns import Column
from storage.schemas import METADATA_KEY, SCHEMA_VERSION, TABLES, Table, arrow_schema
from storage.store import Store
from storage.tables import read_table, write_frame, write_table
from storage.writers import StoreError

PROCESS = {"run_id": "one", "competition_id": "x", "seed": 0, "agent": "a", "exit_code": 0, "gpus": None}
DOCKER = {
    **PROCESS,
    "run_id": "two",
    "network": "none",
    "image": "base",
    "obfuscated": True,
    "exit_code": None,
    "gpus": 1,
}
GRADE = {"run_id": "one", "competition_id": "x", "score": 0.5, "any_medal": True, "seed": 0, "message": None}
NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)


def schemas(store: Store, table: str) -> list[pa.Schema]:
    return [pq.read_schema(io.BytesIO(store.read(url))) for url in store.glob(f"tables/{table}/*/*.parquet")]


def both_ways(store: Store, table: Table) -> pd.DataFrame:
    """The table by one call of pandas; `read_table` gives the same."""
    frame = pd.read_parquet(f"{store.local()}/tables/{table}")
    own = read_table(store, table)
    pd.testing.assert_frame_equal(own, frame.assign(run_group=frame["run_group"].astype(str).astype(object)))
    assert tuple(own.columns) == (*TABLES[table].names, "run_group")
    return own.set_index("run_group")


def _objects(frame: pd.DataFrame) -> pd.DataFrame:
    """Values whatever the type of their column, with None for whatever is missing."""
    return frame.astype(object).mask(frame.isna(), None)


class TestGroupsAgree:
    def test_with_and_without_messages_seeds_and_scores(self, store: Store) -> None:
        write_table(store, "grades", "a", [{**GRADE, "created_at": NOW}])
        write_table(store, "grades", "b", [{**GRADE, "message": "no such column", "score": None, "seed": None}])
        write_table(store, "grades", "c", [{"competition_id": "x"}])
        table = both_ways(store, "grades")
        assert table["message"].to_dict() == {"a": None, "b": "no such column", "c": None}
        assert table["score"].fillna(-1).to_dict() == {"a": 0.5, "b": -1, "c": -1}
        assert table["seed"].fillna(-1).to_dict() == {"a": 0, "b": -1, "c": -1}
        assert table["created_at"]["a"] == NOW
        assert table["created_at"].isna().to_dict() == {"a": False, "b": True, "c": True}

    def test_processes_and_containers(self, store: Store) -> None:
        write_table(store, "runs", "a", [PROCESS])
        write_table(store, "runs", "b", [DOCKER])
        table = both_ways(store, "runs")
        assert table["network"].to_dict() == {"a": None, "b": "none"}
        assert table["obfuscated"].to_dict() == {"a": None, "b": True}
        assert table["gpus"].fillna(-1).to_dict() == {"a": -1, "b": 1}

    @pytest.mark.parametrize("table", TABLES)
    def test_of_every_table_also_where_all_values_are_missing(self, store: Store, table: Table) -> None:
        values = {"string": "x", "int64": 1, "float64": 0.5, "bool": True, "timestamp": NOW}
        write_table(store, table, "full", [{column.name: values[column.type] for column in TABLES[table]}])
        write_table(store, table, "empty", [dict.fromkeys(TABLES[table].names)])
        write_frame(store, table, "frame", pd.DataFrame([{TABLES[table].names[0]: None}]))
        table_of_all = both_ways(store, table)
        assert table_of_all.loc["full"].to_dict() == {column.name: values[column.type] for column in TABLES[table]}
        assert table_of_all.loc[["empty", "frame"]].isna().all(axis=None)
        for schema in schemas(store, table):
            assert schema.equals(arrow_schema(table), check_metadata=True)
            assert not any(pa.types.is_null(field.type) for field in schema)

    def test_nan_is_null_as_pandas_has_it(self, store: Store) -> None:
        write_table(store, "grades", "a", [{**GRADE, "score": math.nan}])
        assert read_table(store, "grades")["score"].isna().tolist() == [True]

    def test_text_that_is_not_unicode_is_escaped(self, store: Store) -> None:
        write_table(store, "grades", "a", [{**GRADE, "message": "no \ud800 é"}, GRADE])
        assert read_table(store, "grades")["message"].tolist() == ["no \\ud800 é", None]

    def test_a_group_without_rows_leaves_no_file(self, store: Store) -> None:
        write_table(store, "grades", "a", [GRADE])
        write_table(store, "grades", "a", [])
        assert store.glob("tables/grades/*/*") == []
        assert read_table(store, "grades").empty


class TestWhatDoesNotFitIsRefused:
    def test_an_unknown_column_with_the_nearest_name(self, store: Store) -> None:
        with pytest.raises(StoreError, match=r"table grades has no column scores\. Did you mean score"):
            write_table(store, "grades", "a", [{**GRADE, "scores": 1.0}])
        assert store.glob("tables/*/*/*") == []

    def test_a_damaged_file_by_its_name(self, store: Store) -> None:
        store.write(store.url("tables", "grades", "run_group=a", "part-0.parquet"), b"PAR1")
        with pytest.raises(StoreError, match=r"run_group=a/part-0\.parquet in .* is damaged"):
            read_table(store, "grades")

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            (pa.table({"seed": [1]}), "is damaged: its columns are not those of the table grades"),
            (
                pa.table({"new": [1]}).replace_schema_metadata({METADATA_KEY: str(SCHEMA_VERSION + 1)}),
                f"has schema version {SCHEMA_VERSION + 1}; this version of mlebench reads up to {SCHEMA_VERSION}",
            ),
            (pa.table({"seed": [1]}).replace_schema_metadata({METADATA_KEY: "one"}), "is damaged: invalid literal"),
        ],
    )
    def test_a_file_of_a_newer_version_or_with_other_columns(self, store: Store, content: pa.Table, says: str) -> None:
        write_table(store, "grades", "a", [GRADE])
        pq.write_table(content, buffer := io.BytesIO())
        name = "tables/grades/run_group=a/part-0.parquet"
        store.write(store.url(name), buffer.getvalue())
        with pytest.raises(StoreError) as caught:
            read_table(store, "grades")
        assert f"{name} in {store.root} {says}" in str(caught.value)


@pytest.mark.parametrize("version", [SCHEMA_VERSION - 1, SCHEMA_VERSION])
def test_columns_that_an_older_version_had_not_are_null(store: Store, version: int) -> None:
    write_table(store, "grades", "a", [GRADE])
    name = store.url("tables", "grades", "run_group=a", "part-0.parquet")
    older = pq.read_table(io.BytesIO(store.read(name))).drop_columns("score")
    older = older.replace_schema_metadata({METADATA_KEY: str(version)})
    pq.write_table(older, buffer := io.BytesIO())
    store.write(name, buffer.getvalue())
    [row] = read_table(store, "grades").to_dict("records")
    assert math.isnan(row["score"])
    assert row["competition_id"] == GRADE["competition_id"]


FITTING = {"string": "x", "int64": 7, "float64": 0.5, "bool": True, "timestamp": NOW}
EXTREMES: dict[str, list[tuple[Any, Any]]] = {
    "string": [
        ("", ""),
        ("a\0b", "a\0b"),
        ("\ud800", "\\ud800"),
        ("x" * 100_000, "x" * 100_000),
        ("NaN", "NaN"),
        (1, None),
        (True, None),
        (math.nan, None),
        (b"\xff", None),
        ({"a": 1}, None),
        (["a"], None),
    ],
    "int64": [
        (2**63 - 1, 2**63 - 1),
        (-(2**63), -(2**63)),
        (2**63, None),
        (-(10**30), None),
        (10**400, None),
        (0.5, None),
        (1e300, None),
        (math.nan, None),
        (math.inf, None),
        ("first", None),
        (NOW, None),
        ({}, None),
    ],
    "float64": [
        (math.nan, None),
        (5e-324, 5e-324),
        (2**80, None),
        (10**400, None),
        ("high", None),
        ([0.5], None),
    ],
    "bool": [(False, False), ("perhaps", None), ({}, None), (NOW, None)],
    "timestamp": [
        (datetime(1700, 1, 1, tzinfo=UTC), datetime(1700, 1, 1, tzinfo=UTC)),
        (datetime(2262, 1, 1, tzinfo=UTC), datetime(2262, 1, 1, tzinfo=UTC)),
        (datetime.min.replace(tzinfo=UTC), None),  # pandas counts nanoseconds
        (datetime.max.replace(tzinfo=UTC), None),
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=14))), None),
        ("yesterday", None),
        ("+999999-01-01", None),
        ("2026-13-01", None),
        (10**30, None),
        (math.inf, None),
        ([], None),
    ],
}
"""Values by type of column, and what the table then has."""


def _infinite(column: Column) -> list[tuple[Any, Any]]:
    """Scores may be infinite, times and costs may not."""
    values = [math.inf, -math.inf] if column.type == "float64" else []
    return [(value, None if column.finite else value) for value in values]


class TestAValueThatDoesNotFit:
    @pytest.mark.parametrize("table", TABLES)
    def test_costs_its_cell_whatever_its_column(
        self, store: Store, table: Table, caplog: pytest.LogCaptureFixture
    ) -> None:
        columns = list(TABLES[table])
        fitting = {column.name: FITTING[column.type] for column in columns}
        extremes = {column.name: [*EXTREMES[column.type], *_infinite(column)] for column in columns}
        cases = [(column.name, *extreme) for column in columns for extreme in extremes[column.name]]
        write_table(store, table, "a", [fitting, *({**fitting, name: value} for name, value, _ in cases), fitting])
        expected = [fitting, *({**fitting, name: value} for name, _, value in cases), fitting]
        [url] = store.glob(f"tables/{table}/*/*.parquet")
        found = pq.read_table(io.BytesIO(store.read(url)))  # pandas has no integers beside nulls
        assert len(read_table(store, table)) == len(expected)
        for column in columns:
            assert found[column.name].to_pylist() == [row[column.name] for row in expected], column.name
        assert schemas(store, table)[0].equals(arrow_schema(table), check_metadata=True)
        for column in columns:
            refused = sum(value is None and given == given for given, value in extremes[column.name])  # NaN is null
            warned = [each for each in caplog.messages if f"column {column.name}: " in each]
            assert len(warned) == 1
            assert f"{refused} values left out, not" in warned[0]
