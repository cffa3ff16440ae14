"""The last lines of `mlebench run`: problems in the runs of a group, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from common.units import counted, listed
from flows.commands.advice import advised
from grading.words import ENDING_WORDS, KIND_WORDS, kind_of
from storage.store import Store
from tasks.wiring.requests import run_name

CRASHES = ("crashed", "memory", "disk", "processes")
"""Statuses of runs that did not end in an orderly way: by an error, or at a limit other than time."""
_MAX_NAMED_RUNS = 3


def problems(runs: pd.DataFrame, grades: pd.DataFrame, store: Store, run_group: str) -> list[str]:
    """Lines about the runs that crashed, were ended, or have no valid submission. Runs that ended alike share a line.

    Args:
        runs: The group's rows of the table `runs`.
        grades: Its rows of the table `grades`.
        store: The store, for the command that shows a log.
        run_group: The name of the group.
    """
    graded = {(row["competition_id"], row["seed"]): row for row in _rows(grades)}
    runs_by_problem: dict[str, list[tuple[str, int]]] = {}
    for run in _rows(runs):
        run_id = (str(run["competition_id"]), int(run["seed"]))
        text = _problem(run, graded.get(run_id))
        if text:
            runs_by_problem.setdefault(text, []).append(run_id)
    lines = []
    for text, run_ids in sorted(runs_by_problem.items(), key=lambda item: -len(item[1])):
        names = listed([run_name(*item) for item in run_ids], _MAX_NAMED_RUNS)
        competition, seed = run_ids[0]
        log = advised(f"mlebench logs {run_group}/{competition}/{seed}", store)
        lines += [f"{counted(len(run_ids), 'run')}: {text}", f"  {names}", f"  log: {log}"]
    return lines


def crashed_agents(runs: pd.DataFrame) -> list[str]:
    """The agents of which every run crashed, sorted by name."""
    statuses: dict[str, set[Any]] = {}
    for run in _rows(runs):
        statuses.setdefault(str(run["agent"]), set()).add(run["status"])
    return sorted(agent for agent, endings in statuses.items() if endings <= set(CRASHES))


def _rows(table: pd.DataFrame) -> list[Mapping[str, Any]]:
    """The rows, with None for missing values."""
    rows = table.to_dict("records")
    return [{str(name): None if pd.isna(value) else value for name, value in row.items()} for row in rows]


def _problem(run: Mapping[str, Any], grade: Mapping[str, Any] | None) -> str:
    """How a run ended and what is wrong with its submission; empty if nothing is."""
    parts = []
    status = run["status"]
    if status not in (None, "completed"):
        parts.append(_with_reason(ENDING_WORDS.get(status, status), run["message"]))
    kind = kind_of(grade) if grade is not None else "ungraded"
    if kind in ("invalid", "missing", "failed", "ungraded"):
        message = grade["message"] if grade is not None and kind in ("invalid", "failed", "missing") else None
        if kind == "missing":  # the message begins with how the run ended, if that is told already
            message = None if parts else (message or "").removeprefix(f"{KIND_WORDS[kind]}: ")
        parts.append(_with_reason(KIND_WORDS[kind], message))
    return "; ".join(parts)


def _with_reason(problem: str, reason: str | None) -> str:
    return f"{problem} ({reason})" if reason else problem
