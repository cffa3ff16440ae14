"""Limits on grading one submission, and checks that reject files before they are read."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from competitions.scoring.errors import InvalidSubmission

if TYPE_CHECKING:
    import pandas as pd

    from competitions.competition import Competition

GIB = 1 << 30

# Largest size of a submission, as a multiple of the larger of sample and gold submission, plus a margin. The formatting
# of numbers cannot explain a larger file, so it is an attack or an accident.
_SIZE_FACTOR = 50
_SIZE_MARGIN_BYTES = 16 << 20
# A parsed table of text takes about ten to twenty times its size on disk.
_MEMORY_FACTOR = 40
_COLUMN_FACTOR = 20
_COLUMN_MARGIN = 20_000
_HEADER_BYTES = 64 << 20
# Largest length of a cell, as a multiple of the longest line of sample and gold submission, plus a margin. Edit
# distances and masks take time that grows faster than the length of a cell.
_CELL_FACTOR = 50
_CELL_MARGIN_CHARACTERS = 1 << 20
_MAX_MEASURED_BYTES = 64 << 20


@dataclass(frozen=True)
class GradingLimits:
    """Limits for one submission. Memory is counted in addition to that of a worker with the answers in memory."""

    memory_bytes: int | None = None  # None: 4 GiB plus 40 times the larger of sample and gold submission
    read_seconds: float = 300.0  # wall-clock time until the submission is parsed
    grade_seconds: float = 3600.0  # wall-clock time from then to the score
    size_bytes: int | None = None  # None: 16 MiB plus 50 times the larger of sample and gold submission

    def __post_init__(self) -> None:
        """Raise ValueError for a limit that is not positive."""
        for name, value in self.__dict__.items():
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be positive, got {value}")


@dataclass(frozen=True)
class Bounds:
    """The resolved limits for one competition."""

    size_bytes: int
    columns: int
    cell_characters: int
    memory_bytes: int
    read_seconds: float
    grade_seconds: float


def bounds_of(competition: Competition, prepared: Path, limits: GradingLimits) -> Bounds:
    """Resolve `limits` for a competition by the size of its sample and gold submission, if they exist in `prepared`."""
    files = competition.facts.files
    paths = [prepared / name for name in (files.sample_submission, files.gold_submission) if name]
    existing_paths = [path for path in paths if path.is_file()]
    largest = max((path.stat().st_size for path in existing_paths), default=0)
    columns = max((_columns(path) for path in existing_paths), default=0)
    longest = max((_longest_line(path) for path in existing_paths), default=0)
    return Bounds(
        size_bytes=limits.size_bytes or _SIZE_MARGIN_BYTES + _SIZE_FACTOR * largest,
        columns=_COLUMN_MARGIN + _COLUMN_FACTOR * columns,
        cell_characters=_CELL_MARGIN_CHARACTERS + _CELL_FACTOR * longest,
        memory_bytes=limits.memory_bytes or 4 * GIB + _MEMORY_FACTOR * largest,
        read_seconds=limits.read_seconds,
        grade_seconds=limits.grade_seconds,
    )


def resident_bytes(pid: int | None = None) -> int:
    """Memory of a process, by default of this one, that a fork of it has from the beginning: its anonymous memory.

    0 without /proc, and if the process has ended.
    """
    try:
        lines = Path(f"/proc/{pid or 'self'}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:")), 0)


def submission_exists(path: Path) -> bool:
    """Whether there is a submission by the rule of the published benchmark: a file whose name ends in .csv."""
    try:
        return path.is_file() and path.suffix.lower() == ".csv"
    except (OSError, ValueError):  # a name that is too long, or with a NUL
        return False


def check_file(path: Path, size_bytes: int) -> None:
    """Raise `InvalidSubmission` unless the path is a regular file of plausible size.

    Links are rejected too, because an agent could link to the answers, which the grader can read.
    """
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        raise InvalidSubmission(f"{path.name} is a symbolic link; submit the file itself")
    if not stat.S_ISREG(status.st_mode):  # reading a pipe may block forever, and reading a device may never end
        raise InvalidSubmission(f"{path.name} is not a regular file; write the submission as a CSV file")
    if status.st_size > size_bytes:
        raise InvalidSubmission(f"the file has {status.st_size:,} bytes; a submission here has at most {size_bytes:,}")


def check_columns(path: Path, limit: int) -> None:
    """Raise `InvalidSubmission` for tables with far too many columns, because each takes kilobytes in the parser.

    The first two lines are counted, because pandas reads surplus cells of the second line as an index.
    """
    columns = _columns(path)
    if columns > limit:
        raise InvalidSubmission(f"the table has {columns:,} columns; a submission here has at most {limit:,}")


def check_cells(table: Any, limit: int) -> None:
    """Raise `InvalidSubmission` if a cell of the data frame `table` is a far too long text. Ignores other tables."""
    import pandas as pd

    for name, column in table.items() if isinstance(table, pd.DataFrame) else ():
        longest = _longest_cell(column)
        if longest > limit:
            raise InvalidSubmission(
                f"a cell of column {str(name)[:80]!r} has {longest:,} characters; a cell here has at most {limit:,}"
            )


def _longest_cell(column: pd.Series) -> int:
    """Characters of the longest text of a column, 0 for a column of numbers."""
    import pandas as pd
    import pyarrow.compute as pc

    if isinstance(column.dtype, pd.ArrowDtype):
        return int(pc.max(pc.utf8_length(column.array.__arrow_array__())).as_py() or 0)
    if column.dtype != object:
        return 0
    return max((len(cell) for cell in column if isinstance(cell, str)), default=0)


def _longest_line(path: Path) -> int:
    """Bytes of the longest line in the first 64 MB of a file."""
    with path.open("rb") as file:
        return max(map(len, file.read(_MAX_MEASURED_BYTES).split(b"\n")))


def _columns(path: Path) -> int:
    with path.open("rb") as file:
        return max(file.readline(_HEADER_BYTES).count(b",") for _ in range(2)) + 1
