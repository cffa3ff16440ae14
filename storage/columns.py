"""The types of columns and tables, and the columns that several tables have; see `storage.schemas`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Type = Literal["string", "int64", "float64", "bool", "timestamp"]


@dataclass(frozen=True)
class Column:
    """One column: its type, what a value means, and its unit."""

    name: str
    type: Type
    meaning: str
    unit: str = ""

    @property
    def finite(self) -> bool:
        """Whether the values must be finite: scores may be infinite, times and costs may not."""
        return self.unit in ("s", "USD", "tokens")


@dataclass(frozen=True)
class TableSchema:
    """A table: what a row describes, and its columns without `run_group`, which is the name of the partition."""

    row: str
    columns: tuple[Column, ...]

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in their order."""
        return tuple(column.name for column in self.columns)


def flags(meanings: dict[str, str]) -> tuple[Column, ...]:
    """Columns that say whether something holds, by name."""
    return tuple(Column(name, "bool", meaning) for name, meaning in meanings.items())


def scores(meanings: dict[str, str], unit: str = "metric") -> tuple[Column, ...]:
    """Columns with scores, by name."""
    return tuple(Column(name, "float64", meaning, unit) for name, meaning in meanings.items())


RUN_ID = Column("run_id", "string", "Name of the run, unique in its run group.")
COMPETITION = Column("competition_id", "string", "The competition.")
SEED = Column("seed", "int64", "Number of the attempt at the competition: 0, 1, ...")
AGENT = Column("agent", "string", "The agent, with its variant: `aide@gpt-4o`.")
EDITION = Column("edition", "string", "`v1` or `v2`: the edition of the dataset.")
COMPLEXITY = Column(
    "complexity", "string", "Complexity split of the competition: low, medium, high, dev, demo, unknown, variant."
)
CATEGORY = Column("category", "string", "Category of the competition, such as Image Classification.")
WHO = (RUN_ID, COMPETITION, SEED, AGENT)

MEDALS = {
    "any_medal": "The rounded score reaches a medal threshold.",
    "gold_medal": "The medal is gold.",
    "silver_medal": "The medal is silver.",
    "bronze_medal": "The medal is bronze.",
    "above_median": "The rounded score is better than the median.",
}
