"""The options of commands that examine results of other systems, and their CSV files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.errors import UserError
from common.texts import read_text
from competitions.facts import ID_PATTERN
from flows.commands.submissions import parse_line
from storage.store import Store

if TYPE_CHECKING:
    from tasks.external import External


@dataclass(frozen=True)
class Examined:
    """The runs that are examined: those of a group, or results of another system in a store of their own."""

    store: Store
    run_group: str
    home: Store
    """The store with the notebooks, which is the same for a group."""

    @property
    def of_others(self) -> bool:
        """Whether these are results of another system."""
        return self.store is not self.home


def read_external(path: Path) -> list[External]:
    """The results in a JSONL file: competition_id, and any of submission_path, code_path and logs_path.

    Relative paths are relative to the file. Raises `UserError` naming the line for a bad line or a folder that does not
    exist.
    """
    from tasks.external import External

    results = []
    for number, text in enumerate(read_text(path).split("\n"), 1):
        if not text.strip():
            continue
        try:
            line = parse_line(text)
        except UserError as error:
            raise UserError(f"{path}:{number}: {error}") from error
        if not re.fullmatch(ID_PATTERN, line.competition_id):
            raise UserError(f"{path}:{number}: {line.competition_id!r} is not the id of a competition")
        code, logs = (path.parent / relative if relative else None for relative in (line.code_path, line.logs_path))
        for path_of_line in (code, logs):
            if path_of_line is not None and not path_of_line.exists():
                raise UserError(f"{path}:{number}: {path_of_line} does not exist")
        submission = path.parent / line.submission_path if line.submission_path else None
        results.append(External(line.competition_id, submission, code, logs, line.run_id))
    if not results:
        raise UserError(f"{path} has no submissions")
    return results


def write_csv(folder: Path, name: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Path:
    """Write rows as `name`.csv into the folder, which is created; returns the path."""
    import pandas as pd

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.csv"
    pd.DataFrame(list(rows), columns=list(columns)).to_csv(path, index=False)
    return path


def shares(rows: Sequence[Mapping[str, Any]], key: str, runs: int) -> list[dict[str, Any]]:
    """One row per value of `key`: the number of runs with such a row, and their share of `runs`."""
    run_ids: dict[str, set[str]] = {}
    for row in rows:
        run_ids.setdefault(str(row[key]), set()).add(str(row["run_id"]))
    return [{key: value, "runs": len(ids), "share": len(ids) / runs} for value, ids in sorted(run_ids.items())]
