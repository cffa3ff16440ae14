"""The lines of prepare.py that give agents tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from competitions.proposals.columns import Columns, Labels, like
from competitions.proposals.findings import mark
from competitions.proposals.layout import Layout, Table, quoted, source
from competitions.proposals.split import Split

if TYPE_CHECKING:
    import pandas as pd

SAMPLE = "sample_submission.csv"
_SOME = 10  # rows that do not have the same cell by chance


def training_rows(layout: Layout, columns: Columns, labels: Labels) -> Table | None:
    """The table with the features of training rows, if Kaggle has them apart from the labels as it has of test rows."""
    test = columns.test
    if test is None or all(like(labels.table, name) for name in test.columns):
        return None
    used = {each.path for each in (test, labels.table, columns.sample.value) if each is not None}
    alike = [each for each in layout.tables if each.path not in used and {*test.columns} <= {*each.columns}]
    key = like(test, labels.ids)
    known = [each for each in alike if key and each.rows[key].isin(labels.table.rows[labels.ids]).any()]
    return min(known, key=lambda each: (len(each.columns), each.name), default=None)


def table_lines(columns: Columns, labels: Labels, twin: Table | None, more: bool) -> list[str]:
    """Lines for the tables of both parts, the answers and the sample. `more`: test rows have other features besides."""
    lines = []
    if not labels.of_folders:
        lines.append(labels.table.writer("train"))
        theirs = columns.test.columns if columns.test else []
        known = [name for name in labels.table.columns if name in theirs and name not in labels.source]
        unknown = [name for name in labels.table.columns if name not in known]
        if columns.test is not None and twin is not None:
            key, rows = quoted(like(twin, labels.ids) or labels.ids), quoted(columns.test.columns)
            lines += [
                f"rows = {twin.reader}",
                twin.writer(f"rows[rows[{key}].isin(train[{quoted(labels.ids)}])]"),
                columns.test.writer(f"rows.loc[rows[{key}].isin(test[{quoted(labels.ids)}]), {rows}]"),
            ]
        elif columns.test is not None:
            dropped = f"test.drop(columns={quoted(unknown if len(unknown) > 1 else unknown[0])})"
            lacking = [name for name in theirs if not like(labels.table, name)]
            alone = not more and {*known} <= {labels.ids, *columns.ids.value}
            reason = f"{columns.test.name} has {', '.join(lacking[:4])} on Kaggle: give them for the new test rows, too"
            reason = reason if lacking else "test rows have ids alone: which features are known of them?"
            line = columns.test.writer(dropped if len(unknown) <= len(known) else f"test[{quoted(known)}]")
            lines.append(line + (mark(reason) if lacking or alone else ""))
        elif others := [name for name in unknown if name not in labels.source and name != labels.ids]:
            dropped = quoted(list(labels.source))
            reason = f"Kaggle has no test table: are {', '.join(others[:4])} known of test rows?"
            lines.append(f'out.public.table("test.csv", test.drop(columns={dropped})){mark(reason)}')
    return [*lines, 'out.private.table("test.csv", answers)', f'out.public.table("{SAMPLE}", sample)']


def extra_lines(table: Table, columns: Columns, labels: Labels, split: Split) -> list[str]:
    """Lines for a further table: the rows of both parts, or of the training part if Kaggle has it of that alone."""
    used = {each.name for each in (columns.sample.value, columns.test, labels.table) if each is not None}
    if table.name in used or table.part == "test" or any(w in table.base for w in ("sample", "submission", "solution")):
        return []
    if table.rows.equals(labels.table.rows):  # the same table in an archive
        return []
    train = labels.table.rows
    shared = {own: other for own in labels.table.columns if own not in labels.source and (other := like(table, own))}
    own = labels.ids if labels.ids in shared else max(shared, key=lambda own: train[own].nunique(), default="")
    copy = f"out.public.copy({quoted(table.name)}, {source(table.archive)}.file({quoted(table.name)}))"
    if not own:
        reason = f"{table.name} has no column of {labels.table.name}: does it tell answers of test rows?"
        return [copy + (mark(reason) if _may_be_of_rows(table, labels) else "")]
    key, test_key = shared[own], like(columns.test, own) if columns.test else None
    theirs: pd.Series | None = columns.test.rows[test_key] if columns.test and test_key else None
    if theirs is None and own == labels.ids and columns.sample.value is not None:
        theirs = columns.sample.value.rows[columns.ids.value[0]]
    of_test = table.rows[table.rows[key].isin(theirs)] if theirs is not None else table.rows.head(0)
    if theirs is not None and of_test.empty:
        return [f"rows = {table.reader}", table.writer(f"rows[rows[{quoted(key)}].isin(train[{quoted(own)}])]")]
    blank = _empty_for_test(table.rows, of_test, key)
    if theirs is not None and own != labels.ids and not blank:
        whole = table.count > len(train) / 2 and (split.by, split.column) != ("units", own)
        reason = f"{table.name} goes to agents whole: does it tell answers of test rows?"
        return [copy + (mark(reason) if whole else "")]
    doubt = "" if theirs is not None else mark(f"Kaggle has no test rows with {own}: is {table.name} known of them?")
    part = f"{'train' if theirs is None else 'table'}[{quoted(own)}]"
    lines = [f"rows = {table.reader}", table.writer(f"rows[rows[{quoted(key)}].isin({part})]") + doubt]
    if blank:  # Kaggle's test rows have nothing in them
        lines.insert(1, f"rows.loc[rows[{quoted(key)}].isin(test[{quoted(own)}]), {quoted(blank)}] = None")
    return lines


def _empty_for_test(rows: pd.DataFrame, of_test: pd.DataFrame, key: str) -> list[str]:
    """Columns of a table that hardly any row of Kaggle's test set has filled, or all with the same cell."""
    if of_test.empty:
        return []
    others = rows.drop(index=of_test.index)
    return [
        str(name)
        for name in rows
        if name != key
        and (
            of_test[name].notna().mean() < others[name].notna().mean() / 10
            or (len(of_test) >= _SOME and of_test[name].nunique() <= 1 < others[name].nunique())
        )
    ]


def _may_be_of_rows(table: Table, labels: Labels) -> bool:
    """Whether a table has about as many rows as there are labels, or cells that are ids."""
    ids = labels.table.rows[labels.ids].dropna().astype(str)
    cells = (table.rows[name].dropna().astype(str) for name in table.rows)
    return table.count > len(ids) / 10 or any(len(each) and each.isin(ids).mean() > 1 / 2 for each in cells)
