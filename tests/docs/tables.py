"""The data dictionary in docs/tables.md, from `storage.schemas`.

`python -m tests.docs.tables` brings it up to date. What precedes the line BEGIN is written by hand.
"""

from __future__ import annotations

from pathlib import Path

from storage.columns import Column
from storage.schemas import SCHEMA_VERSION, TABLES, Table, arrow_schema

DOCUMENT = Path(__file__).parents[2] / "docs" / "tables.md"
BEGIN = "<!-- generated from storage/schemas.py by python -m tests.docs.tables -->"


def dictionary() -> str:
    """What follows BEGIN: a section for each table."""
    sections = [section(table) for table in TABLES]
    return "\n".join([f"The current schema version is {SCHEMA_VERSION}.", "", *sections])


def section(table: Table) -> str:
    """Heading, what one row is, and one line for each column."""
    types = {field.name: str(field.type) for field in arrow_schema(table)}
    lines = [f"| `{each.name}` | {types[each.name]} | {each.unit} | {_meaning(each)} |" for each in TABLES[table]]
    head = ["| column | type | unit | meaning |", "|---|---|---|---|"]
    return "\n".join([f"## {table}", "", f"One row: {TABLES[table].row}.", "", *head, *lines, ""])


def _meaning(column: Column) -> str:
    return column.meaning.replace("|", "\\|")


def update(text: str) -> str:
    """The document with the generated part as it must be."""
    return f"{text.partition(BEGIN)[0]}{BEGIN}\n\n{dictionary()}"


if __name__ == "__main__":
    DOCUMENT.write_text(update(DOCUMENT.read_text("utf-8")), "utf-8")
