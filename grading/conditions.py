"""The conditions stated in a report: network access of the runs, medal thresholds, and the grader's version."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, TypeVar

from common import machine
from common.splits import RecordedSplit
from common.units import counted, elapsed, size

if TYPE_CHECKING:
    import pandas as pd

Name = TypeVar("Name")
_COMPARED = {
    "backend": "backend",
    "network": "network",
    "time_limit_seconds": "time limit",
    "cpus": "processors",
    "memory_bytes": "memory",
    "gpus": "GPUs",
    "hardware": "hardware",
    "obfuscated": "obfuscated descriptions",
    "scorer": "scorer",
    "feedback": "feedback",
    "feedback_calls_per_day": "public scores a day",
}
"""Columns of tables/runs that decide what an agent could do."""
SWITCHES = {
    "obfuscated": "with obfuscated descriptions: agents were not told which competition they worked on",
    "scorer": "with the scorer: agents could compute the official metric on their own held-out data",
    "feedback": "with feedback: agents were told scores on {feedback} of the test rows, {feedback_calls_per_day} a "
    "day, and are graded on the rest",
}
"""Conditions that can be switched on, and how they deviate from the published ones when they are on.

They are fields of `tasks.wiring.requests.RunRequest`, part of the key of a run, and columns of tables/runs. Where they
are on, the value is true, or the share of the test rows for `feedback`; where they are off, it is null or false.
"""
_OFF_IF_NULL = (*SWITCHES, "feedback_calls_per_day")
_FEW = 4  # groups, up to which their values are stated
_PUBLISHED: tuple[tuple[str, tuple[float, ...], str], ...] = (
    ("time_limit_seconds", (24 * 3600.0,), "24 h"),
    ("cpus", (36,), "36 vCPU"),
    ("memory_bytes", (440e9, 440 * 2**30), "440 GB"),  # decimal, or binary as Docker counts
)
_SPLIT = ("split", "split_version", "split_digest", "split_description")
_LIMITS = [f"{medal}_threshold" for medal in ("gold", "silver", "bronze", "median")]
_PUBLISHED_SEEDS = 3
_PUBLISHED_GPU = re.compile(r"\bA10\b")  # neither an A100 nor an A10G


def deviations(runs: pd.DataFrame, seeds: int, edition: str) -> list[str]:
    """Deviations of a series from the published conditions: 24 h, 36 vCPU, 440 GB, one A10, three seeds, edition v1.

    `seeds` is the least number of seeds that count in a split.

    A condition that was not recorded is a deviation, too. The validation service is no deviation, because agents learn
    only whether a submission is valid.
    """
    differing = []
    for column, published, words in _PUBLISHED:
        values, unknown = _recorded(runs, column)
        if (
            any(not any(math.isclose(value, allowed, rel_tol=0.03) for allowed in published) for value in values)
            or unknown
        ):
            shown = [_shown(column, value) for value in values] + ["not recorded"] * unknown
            differing.append(f"{_COMPARED[column]}: {', '.join(shown)} (published: {words})")
    gpus, unknown = _recorded(runs, "gpus")
    boards = _known(runs, "hardware")
    kinds = [_PUBLISHED_GPU.search(board) is not None for board in boards]
    if gpus != [1] or unknown or not kinds or not all(kinds):
        number = ", ".join([f"{value:g}" for value in gpus] + ["not recorded"] * unknown)
        kind = "" if kinds and all(kinds) else ", not all of them an A10" if any(kinds) else ", no A10 recorded"
        differing.append(f"GPUs: {number}{kind} (published: one A10)")
    if seeds != _PUBLISHED_SEEDS:
        differing.append(f"counted seeds: {seeds} (published: {_PUBLISHED_SEEDS})")
    if edition != "v1":
        differing.append(f"edition: {edition} (published: v1)")
    return differing + [_meaning(name, [runs]) for name in SWITCHES if used(runs, name)]


def unlike(groups: Sequence[pd.DataFrame]) -> list[str]:
    """The conditions in which groups of runs differ, in words.

    A limit that was not set is a condition as any other. Groups without runs, as imported ones, have unknown
    conditions, which are unlike all others, also unknown ones.
    """
    if len(groups) < 2:
        return []
    with_runs = [runs for runs in groups if len(runs)]
    conditions = list(unlike_values(dict(enumerate(with_runs))))
    return conditions if len(with_runs) == len(groups) else [*conditions, "what is not known of imported results"]


def unlike_values(groups: Mapping[Name, pd.DataFrame]) -> dict[str, dict[Name, str]]:
    """The conditions in which groups that have runs differ, and the values in each group, in words."""
    found = {}
    for column, words in _COMPARED.items():
        by_group = {name: _conditions(runs, column) for name, runs in groups.items() if len(runs)}
        if column == "feedback_calls_per_day":  # `feedback` says which groups have none
            by_group = {name: on for name, values in by_group.items() if (on := values - {False})}
        if len(set(map(frozenset, by_group.values()))) > 1:
            texts = {name: _told(column, values) for name, values in by_group.items()}
            found[words] = {name: texts.get(name, "no" if len(groups[name]) else "not known") for name in groups}
    return found


def with_values(condition: str, values: Mapping[str, str]) -> str:
    """A condition, with the value of each group in brackets where they are few."""
    stated = ", ".join(f"{name}: {value}" for name, value in values.items())
    return f"{condition} ({stated})" if 0 < len(values) <= _FEW else condition


def switched_on(groups: Mapping[str, pd.DataFrame]) -> list[str]:
    """The conditions of `SWITCHES` that are on, in words, with the names of the groups if it is not in all of them."""
    texts = []
    for column in SWITCHES:
        names = [name for name, runs in groups.items() if used(runs, column)]
        who = ", ".join(names) if len(names) <= _FEW else f"{len(names)} of {len(groups)} agents"
        if names:
            words = _meaning(column, [groups[name] for name in names])
            head, _, meaning = words.partition(":")
            texts.append(words if len(names) == len(groups) else f"{head} ({who}):{meaning}")
    return texts


def used(runs: pd.DataFrame | None, column: str) -> bool:
    """Whether a condition of `SWITCHES` is on in any of these runs."""
    return runs is not None and bool(_conditions(runs, column) - {False})


def values_of(runs: pd.DataFrame, column: str) -> str:
    """The values of a condition, in words."""
    return _told(column, _conditions(runs, column))


def _told(column: str, values: Set[Any]) -> str:
    return ", ".join(sorted(_worded(column, value) for value in values))


def _meaning(name: str, groups: Sequence[pd.DataFrame]) -> str:
    """The words of a condition, with the values that it has where it is on."""
    values = {column: set[Any]().union(*(_conditions(runs, column) for runs in groups)) for column in _OFF_IF_NULL}
    told = {
        column: " or ".join(_worded(column, value) for value in sorted(found - {False})) or "an unrecorded number"
        for column, found in values.items()
    }
    words = SWITCHES[name].format_map(told)
    on, total = sum(int((runs[name].fillna(0) > 0).sum()) for runs in groups if name in runs), sum(map(len, groups))
    return words if name != "feedback" or on == total else words.replace(":", f" in {on} of {total} runs:", 1)


def _worded(column: str, value: Any) -> str:
    if value is None:
        return "not recorded"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else _shown(column, value)


def _conditions(runs: pd.DataFrame, column: str) -> set[Any]:
    """The values of a condition. Numbers are floats, because columns with an unknown value are read as such."""
    if column in _OFF_IF_NULL:  # also in a table from before there was the column
        known = runs[column].dropna() if column in runs else ()
        kind = bool if column in ("obfuscated", "scorer") else float
        return {kind(value) for value in known} | ({False} if not len(known) or len(known) < len(runs) else set())
    if column not in runs:
        return {None}
    values = {value if isinstance(value, str) else float(value) for value in runs[column].dropna()}
    return values | {None} if runs[column].isna().any() else values


def unlike_grades(tables: Sequence[pd.DataFrame]) -> list[str]:
    """The differences in how groups were graded, in words; each of `tables` has the grades of one group."""
    differing = []
    if len({frozenset(grades["edition"]) for grades in tables}) > 1:
        differing.append("edition")
    elif len(versions := {frozenset(_known(grades, "edition_version")) for grades in tables} - {frozenset()}) > 1:
        differing.append(
            f"version of the edition ({', '.join(sorted({version for group in versions for version in group}))})"
        )
    limits: dict[str, tuple[Any, ...]] = {}
    for grades in tables:
        if not set(_LIMITS) <= set(grades):
            continue
        for name, *values in grades[["competition_id", *_LIMITS]].drop_duplicates().itertuples(index=False):
            if limits.setdefault(str(name), tuple(values)) != tuple(values):
                return [*differing, "medal thresholds"]
    return differing


def _known(table: pd.DataFrame, column: str) -> set[str]:
    return set(table[column].dropna().astype(str)) if column in table else set()


def _recorded(runs: pd.DataFrame, column: str) -> tuple[list[float], bool]:
    """The sorted values of a condition, and whether any run has none."""
    if column not in runs or runs.empty:
        return [], True
    return sorted({float(value) for value in runs[column].dropna()}), bool(runs[column].isna().any())


def _shown(column: str, value: float) -> str:
    if column == "time_limit_seconds":
        return elapsed(value)
    if column == "feedback":
        return f"{100 * value:g} %"
    return size(int(value)) if column == "memory_bytes" else f"{value:g}"


def split_of(*runs: pd.DataFrame) -> str | None:
    """The split of one's own that all runs of these tables were made for; None if there is no such split."""
    names = {name for table in runs for name in (table["split"] if "split" in table and len(table) else [None])}
    only = names.pop() if len(names) == 1 else None
    return only if isinstance(only, str) else None


def split_notes(runs: pd.DataFrame, present: Mapping[str, RecordedSplit], counted: str | None = None) -> list[str]:
    """What the splits of one's own are that runs were made for, or that a report counts, and which were changed.

    A split is changed if one version of it has different competitions in these runs, or in the settings.

    Args:
        runs: rows of tables/runs.
        present: the splits that the settings have now, by name.
        counted: the split that is counted, which may be none of one's own.
    """
    recorded = runs[list(_SPLIT)].dropna().drop_duplicates() if {*_SPLIT} <= {*runs} else runs.head(0)
    found = [RecordedSplit.model_validate(row) for row in recorded.astype(str).to_dict("records")]
    shown = dict.fromkeys([*found, *(split for split in present.values() if split.split == counted)])
    notes = [f"{split.split}: {split.split_description}" for split in shown]
    for name, version in dict.fromkeys((split.split, split.split_version) for split in shown):
        of_runs = {split.split_digest for split in found if (split.split, split.split_version) == (name, version)}
        now = present.get(name)
        of_settings = {now.split_digest} if now is not None and now.split_version == version else set()
        if len(of_runs | of_settings) > 1:
            where = "some of these runs than in others" if len(of_runs) > 1 else "the settings than in these runs"
            notes.append(
                f"Split {name} was changed without another version: version {version} has other competitions in {where}"
            )
    return notes


def mark_notes(runs: pd.DataFrame) -> list[str]:
    """Which competitions had places marked with CHECK when they were run, so that their scores may be wrong."""
    if "check_marks" not in runs or runs["check_marks"].isna().all():
        return []
    marks = runs.groupby("competition_id")["check_marks"].max().dropna()
    if len(marks) == 1:
        return [f"1 competition had {counted(int(marks.iloc[0]), 'CHECK mark')} when it was run: {marks.index[0]}"]
    named = ", ".join(f"{name} ({count:g})" for name, count in marks.items())
    return [f"{len(marks)} competitions had CHECK marks when they were run: {named}"]


def report_conditions(runs: pd.DataFrame, grades: pd.DataFrame, run_group: str) -> dict[str, str]:
    """Labels and values for a run group, taken from its rows in tables/runs and tables/grades."""
    group_runs = runs[runs["run_group"] == run_group] if len(runs) else runs
    facts = {}
    no_policy = "network" not in group_runs or group_runs["network"].isna().all()
    if len(group_runs) and no_policy:
        backends = ", ".join(sorted(group_runs["backend"].dropna().unique()))
        facts["Network"] = f"not restricted ({backends} backend)" if backends else "not restricted"
    if "feedback_missing" in group_runs and len(missing := group_runs[group_runs["feedback_missing"].notna()]):
        named = sorted({f"{name} ({why})" for name, why in missing[["competition_id", "feedback_missing"]].to_numpy()})
        facts["Without feedback"] = f"{len(missing)} of {len(group_runs)} runs: {', '.join(named)}"
    graded = grades[grades["run_group"] == run_group] if len(grades) else grades
    boards = sorted(graded["leaderboard"].dropna().unique()) if "leaderboard" in graded else []
    facts["Medal thresholds"] = ", ".join(boards) or "stored"
    return facts | {
        "Graded with": machine.software(),
        "Graded on": machine.hardware(),
        "Source of the grader": machine.commit(),
    }
