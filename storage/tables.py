"""Parquet tables below `tables/`, partitioned by run group. `storage.schemas` describes their columns.

These tables contain values that providers, agents and other people's stores report. A value that does not fit the type
of its column is therefore replaced by null, with a warning: its row and those of other runs are still written.
"""

from __future__ import annotations

import glob
import io
import logging
import reprlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from common.errors import close_matches
from storage.schemas import METADATA_KEY, SCHEMA_VERSION, TABLES, Table, arrow_schema
from storage.store import Store
from storage.writers import StoreError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = ["Table", "read_table", "write_frame", "write_table"]

_PARTITION = "run_group"
_logger = logging.getLogger("mlebench.storage")


def write_table(
    store: Store, table: Table, run_group: str, rows: Iterable[Mapping[str, Any]], part: str = "part-0"
) -> None:
    """Replace the rows of `run_group`. The group is part of the path and not a column of the file.

    Columns that a row lacks are null, and so are values that do not fit their column, with a warning. Concurrent tasks
    that share a table each write a `part` of it. Raises `StoreError` for an unknown column.
    """
    import pandas as pd

    write_frame(store, table, run_group, pd.DataFrame(list(rows), dtype=object), part)


def write_frame(store: Store, table: Table, run_group: str, frame: pd.DataFrame, part: str = "part-0") -> None:
    """Like `write_table`, with the rows as a data frame. A frame without rows removes the file."""
    import pyarrow.parquet as pq

    url = store.url("tables", table, f"{_PARTITION}={run_group}", f"{part}.parquet")
    if frame.empty:
        store.remove(url)
        return
    unknown = [str(name) for name in frame.columns if name not in (_PARTITION, *TABLES[table].names)]
    if unknown:
        close = close_matches(unknown[0], TABLES[table].names)
        raise StoreError(f"table {table} has no column {', '.join(unknown)}.{close}")
    content = io.BytesIO()
    pq.write_table(_with_schema(frame, table, f"table {table} of group {run_group}"), content)
    store.write(url, content.getvalue())


def read_table(store: Store, table: Table, run_groups: Iterable[str] | None = None) -> pd.DataFrame:
    """Read all rows, or those of some run groups, with `run_group` as the last column. The frame may be empty.

    The result is that of ``pandas.read_parquet("<root>/tables/grades")``, except that `run_group` is text instead of a
    category. Columns that files of an older schema version lack are null. Raises `StoreError` for a file of a newer
    schema version, or with other columns.
    """
    import pandas as pd
    import pyarrow as pa

    groups = [None] if run_groups is None else sorted(set(run_groups))
    files = sorted(chain.from_iterable(store.concurrently([partial(_files, store, table, group) for group in groups])))
    contents = store.concurrently([partial(_read, store, url, table) for url, _ in files])
    parts = [
        rows.append_column(_PARTITION, pa.array([group] * len(rows), pa.string()))
        for rows, (_, group) in zip(contents, files, strict=True)
    ]
    frame: pd.DataFrame = pa.concat_tables(parts).to_pandas() if parts else pd.DataFrame()
    return frame


def _files(store: Store, table: Table, run_group: str | None) -> list[tuple[str, str]]:
    """URL and run group of each Parquet file of a table, of one group or of all."""
    group = "*" if run_group is None else glob.escape(run_group)
    urls = store.glob(f"tables/{table}/{_PARTITION}={group}/*.parquet")
    return [(url, url.split(f"{_PARTITION}=", 1)[1].split("/", 1)[0]) for url in urls]


def _read(store: Store, url: str, table: Table) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Read from bytes, because pyarrow would convert the partition in a path to a column.
    where = f"{store.relative(url)} in {store.root}"
    try:
        rows = pq.read_table(io.BytesIO(store.read(url)))
        version = int((rows.schema.metadata or {}).get(METADATA_KEY, SCHEMA_VERSION))
    except (pa.ArrowException, ValueError) as error:
        raise StoreError(f"{where} is damaged: {error}") from error
    if version > SCHEMA_VERSION:
        raise StoreError(f"{where} has schema version {version}; this version of mlebench reads up to {SCHEMA_VERSION}")
    schema = arrow_schema(table)
    if METADATA_KEY in (rows.schema.metadata or {}):  # a file of ours lacks the columns that were added since
        for field in schema:
            if field.name not in rows.schema.names:
                rows = rows.append_column(field, pa.nulls(len(rows), field.type))
    try:  # another program may have rewritten the file, with other widths of types
        return rows.select(schema.names).cast(schema)
    except (KeyError, pa.ArrowException) as error:
        raise StoreError(f"{where} is damaged: its columns are not those of the table {table}") from error


def _with_schema(frame: pd.DataFrame, table: Table, description: str) -> pa.Table:
    """The frame as an Arrow table with all columns of the schema."""
    import pyarrow as pa

    schema = arrow_schema(table)
    kinds = TABLES[table]
    columns = {kind.name: _column(frame, schema.field(kind.name), description, finite=kind.finite) for kind in kinds}
    return pa.table(columns, schema=schema)


def _column(frame: pd.DataFrame, field: pa.Field, description: str, *, finite: bool) -> pa.Array:
    import pyarrow as pa

    if field.name not in frame:
        return pa.nulls(len(frame), field.type)
    unfit: list[Any] = []
    parts = _fitting(frame[field.name], partial(_converted, kind=field.type, finite=finite), unfit)
    if unfit:
        amount = "a value" if len(unfit) == 1 else f"{len(unfit):,} values"
        example = reprlib.repr(unfit[0])
        _logger.warning("%s: column %s: %s left out, not %s: %s", description, field.name, amount, field.type, example)
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def _fitting(values: pd.Series[Any], convert: Callable[[pd.Series[Any]], pa.Array], unfit: list[Any]) -> list[pa.Array]:
    """The converted values, with null for those that cannot be converted, which are added to `unfit`."""
    import pandas as pd
    import pyarrow as pa

    try:
        return [convert(values)]
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        if len(values) == 1:
            unfit.append(values.iloc[0])
            return [convert(pd.Series([None], dtype=object))]
        middle = len(values) // 2
        return [*_fitting(values[:middle], convert, unfit), *_fitting(values[middle:], convert, unfit)]


def _converted(values: pd.Series[Any], *, kind: pa.DataType, finite: bool) -> pa.Array:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_timestamp(kind):  # values may be ISO texts
        values = pd.to_datetime(values, utc=True, format="ISO8601").astype("datetime64[us, UTC]")
    try:
        array = pa.array(values, from_pandas=True)
    except UnicodeEncodeError:  # lone surrogates, for example in names of files that are not UTF-8
        array = pa.array(values.map(_encodable), from_pandas=True)
    no_text = pa.types.is_string(kind) and array.type not in (pa.string(), pa.large_string(), pa.null())
    if no_text or (pa.types.is_temporal(array.type) and not pa.types.is_timestamp(kind)):
        raise TypeError(f"they are {array.type}")
    array = array.cast(kind)
    if finite and pa.types.is_floating(kind) and pc.any(pc.is_inf(array)).as_py():
        raise ValueError("they are infinite")
    return array


def _encodable(value: Any) -> Any:
    """Text with lone surrogates escaped; other values unchanged."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
