"""docs/tables.md has every table with every column, as the schemas have them."""

from __future__ import annotations

import pytest

from storage.schemas import TABLES, Table
from tests.docs.tables import DOCUMENT, update

HINT = "bring docs/tables.md up to date: python -m tests.docs.tables"


def test_the_data_dictionary_is_current() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert update(text) == text, HINT


def test_a_column_that_is_missing_or_changed_is_noticed() -> None:
    text = DOCUMENT.read_text("utf-8")
    changed = text.replace("| `score` | double |", "| `score` | string |")
    assert changed != text
    assert update(changed) == text


@pytest.mark.parametrize("table", TABLES)
def test_every_column_is_described(table: Table) -> None:
    columns = TABLES[table].columns
    assert len({column.name for column in columns}) == len(columns)
    for column in columns:
        assert column.meaning.endswith("."), column
