"""mlebench plan."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from common.errors import UserError
from common.units import counted
from competitions import registry
from flows.commands.answers import answer, takes_json
from flows.commands.completion import SPLITS
from flows.commands.graded import graded
from flows.commands.options import StoreOptions, takes
from flows.commands.quantities import DIFFERENCE, POWER
from flows.commands.tables import show_table
from flows.commands.types import GRADED_GROUP
from grading.statistics.differences import QUESTIONS, Question

if TYPE_CHECKING:
    import pandas as pd

    from grading.statistics.power import Variances
    from storage.store import Store

_FEW = 10
"""Variances of fewer competitions are said to be rough."""
SEEDS = (1, 2, 3, 5, 10)
SIZES = {"low": 22, "all": 75}
"""Competitions of the splits that are planned for by default."""

_EQUAL = {
    "any_medal": ("whether there is a medal", "use --figure percentile, or name other groups"),
    "percentile": ("percentile", "name other groups"),
}
"""In what runs are equal that do not vary, and what to do then."""


@dataclass(frozen=True)
class Plan:
    """What a number of competitions and seeds costs for one agent, and which differences it detects; in points."""

    competitions: int
    seeds: int
    runs: int
    hours: float
    dollars: float
    detectable_these: float
    power_these: float
    detectable_like_these: float
    power_like_these: float


@click.command("plan")
@click.argument("groups", metavar="GROUP...", type=GRADED_GROUP, nargs=-1, required=True)
@click.option(
    "--difference",
    type=DIFFERENCE,
    metavar="POINTS",
    default=5.0,
    show_default=True,
    help="True difference between two agents that is to be detected, in percentage points.",
)
@click.option(
    "--power",
    type=POWER,
    metavar="[PERCENT]",
    is_flag=False,
    flag_value=80.0,
    default=80.0,
    show_default=True,
    help="Share of repetitions in which it is to be detected.",
)
@click.option(
    "--figure",
    type=click.Choice(["any_medal", "percentile"]),
    default="any_medal",
    show_default=True,
    help="What is compared: the share of runs with any medal, or their mean human percentile.",
)
@click.option(
    "--split",
    metavar="NAME",
    shell_complete=SPLITS,
    help="Plan for the competitions of this split. Default: the split of your own that all runs were made for, or else "
    "low and all.",
)
@takes(storage=StoreOptions)
@takes_json
def command(
    groups: tuple[str, ...], difference: float, power: float, figure: str, split: str | None, storage: StoreOptions
) -> None:
    """Plan a comparison of two agents: how many seeds and competitions detect a difference, and what they cost.

    How much runs vary is taken from the results of each GROUP, of one agent each, which may be imported reports. With
    several groups, how much agents differ from competition to competition is measured; with one, their results are
    supposed to correlate with 0.5 over competitions.

    For each number of competitions and seeds, the table has the runs, hours and dollars of one agent, the smallest
    difference that is detected, and the power for --difference: on these competitions, where only runs vary, and on
    competitions like these, where competitions vary, too. Tests are two-sided at 5 %, paired by competition.
    """
    from grading.conditions import split_of
    from storage.tables import read_table

    store = storage.open()
    names = list(dict.fromkeys(groups))
    runs = read_table(store, "runs", [group.partition("@")[0] for group in names])
    if split is None and (own_split := split_of(runs)) in registry.own_splits():
        split = own_split
    members = {split: registry.list(split)} if split else {}
    sizes = {name: len(ids) for name, ids in members.items()} or SIZES
    tables, splits = _tables(store, names, figure, members)
    found = _variances(tables, figure)
    per_run, wanted = _per_run(runs), (difference / 100, power / 100)
    plans = [
        _plan(found[name], competitions, seeds, wanted, per_run)
        for name, competitions in sizes.items()
        for seeds in SEEDS
    ]
    if answer(plans):
        return
    power_head = f"POWER % FOR {difference:g}"
    head = ("COMPETITIONS", "SEEDS", "RUNS", "HOURS", "DOLLARS", "THESE", power_head, "LIKE THESE", f"{power_head} ")
    show_table(head, [_cells(plan) for plan in plans], right=head)
    measured = found["all"]
    within, between = (_number(100 * math.sqrt(each), ".1f") for each in (measured.within, measured.between))
    supposed = "" if measured.measured else ", supposing a correlation of 0.5; a second GROUP measures it"
    click.echo(f"THESE: smallest difference detected {QUESTIONS['these']}; runs vary by {within} points")
    click.echo(f"LIKE THESE: {QUESTIONS['like_these']}; true differences vary by {between} points{supposed}")
    for remark in _remarks(found, splits, sizes):
        click.echo(remark)
    _show_verdict(plans, measured, difference, power)


def _tables(
    store: Store, groups: Sequence[str], figure: str, members: Mapping[str, Sequence[str]]
) -> tuple[dict[str, list[pd.DataFrame]], dict[str, str]]:
    """For each split, a frame of each group with the same competitions as rows, and a column per seed, in fractions.

    "all" has all competitions of the groups. The others are those of `members`, or else low. Second, the complexity of
    each competition.
    """
    from grading.statistics.counting import gives_shares, share_beaten
    from grading.statistics.series import latest_grades
    from tasks.report import leaderboards_of

    frames: list[pd.DataFrame] = []
    splits: dict[str, str] = {}
    for group in groups:
        grades = latest_grades(graded(store, group))
        grades = grades[grades["outcome"] != "failed"]
        splits |= dict(zip(grades["competition_id"], grades["complexity"], strict=True))
        values = grades["any_medal"].astype(float).tolist()
        if figure == "percentile":
            boards = leaderboards_of(grades)
            values = [
                share_beaten(row, points) if gives_shares(points := boards.get(row["competition_id"], ())) else math.nan
                for row in grades.to_dict("records")
            ]
        frames.append(grades.assign(value=values).pivot(index="competition_id", columns="seed", values="value"))
    members = members or {"low": [name for name, split in splits.items() if split == "low"]}
    names = {**{split: sorted(splits.keys() & set(ids)) for split, ids in members.items()}, "all": sorted(splits)}
    return {split: [frame.reindex(ids) for frame in frames] for split, ids in names.items()}, splits


def _variances(tables: dict[str, list[pd.DataFrame]], figure: str) -> dict[str, Variances]:
    """The variances in the results of each split, or of all if a split does not tell them.

    Raises `UserError` if the results do not tell how much runs vary.
    """
    from grading.statistics.power import variances

    found = {split: variances([table.to_numpy(float) for table in frames]) for split, frames in tables.items()}
    everything = found["all"]
    if math.isnan(everything.within):
        raise UserError("no competition has two graded runs, so how much runs vary is not known; name other groups")
    if everything.within == 0:
        what, otherwise = _EQUAL[figure]
        raise UserError(f"each competition's runs are equal in {what}, so how much runs vary is not known; {otherwise}")
    return {
        split: each if each.within > 0 and not math.isnan(each.between) else everything for split, each in found.items()
    }


def _remarks(found: dict[str, Variances], splits: dict[str, str], sizes: Mapping[str, int]) -> list[str]:
    """What makes the figures doubtful: few competitions, those of no split of the benchmark, or none of a split."""
    remarks, measured = [], found["all"].competitions
    foreign = sorted(set(splits.values()) - {"low", "medium", "high"}) if sizes is SIZES else []
    if measured < _FEW or foreign:
        of = f" ({', '.join(foreign)})" if foreign else ""
        words = (["rough"] if measured < _FEW else []) + (["not those of Low or All"] if foreign else [])
        remarks.append(f"measured on {counted(measured, 'competition')}{of}: {', and '.join(words)}")
    remarks += [
        f"the rows of {counted(size, 'competition')} ({split}) take the variances of all: those of {split} are unknown"
        for split, size in sizes.items()
        if split != "all" and found[split] is found["all"]
    ]
    return remarks


def _per_run(runs: pd.DataFrame) -> tuple[float, float]:
    """Mean hours and dollars of the runs; NaN where none is known, as for imported reports."""
    columns = (("duration_seconds", 3600.0), ("gateway_cost_usd", 1.0))
    hours, dollars = (float(runs[name].mean()) / unit if name in runs else math.nan for name, unit in columns)
    return hours, dollars


def _plan(
    found: Variances, competitions: int, seeds: int, wanted: tuple[float, float], per_run: tuple[float, float]
) -> Plan:
    """One row; `wanted` are the difference and the power as fractions, `per_run` the hours and dollars."""
    from grading.statistics.power import detectable, power_of, standard_error

    runs, (difference, power) = competitions * seeds, wanted
    these, like_these = (standard_error(found, competitions, seeds, question) for question in QUESTIONS)
    return Plan(
        competitions,
        seeds,
        runs,
        *(runs * each for each in per_run),
        *(
            100 * value
            for error in (these, like_these)
            for value in (detectable(error, power), power_of(difference, error))
        ),
    )


def _cells(plan: Plan) -> list[str]:
    counts = [f"{count:,}" for count in (plan.competitions, plan.seeds, plan.runs)]
    points = [
        text
        for smallest, power in (
            (plan.detectable_these, plan.power_these),
            (plan.detectable_like_these, plan.power_like_these),
        )
        for text in (_points(smallest), _number(power, ".0f"))
    ]
    return [
        *counts,
        _number(plan.hours, ",.0f" if plan.hours >= 10 else ".1f"),
        _number(plan.dollars, ",.2f"),
        *points,
    ]


def _number(value: float, form: str) -> str:
    return "n/a" if math.isnan(value) else format(value, form)


def _points(value: float) -> str:
    """A difference, which cannot exceed 100 points."""
    return "none" if value > 100 else _number(value, ".1f")


def _show_verdict(plans: Sequence[Plan], found: Variances, difference: float, power: float) -> None:
    """For each question, the fewest runs that detect the difference."""
    from grading.statistics.power import competitions_needed, seeds_needed

    most = plans[-1]
    seeds = seeds_needed(found, difference / 100, most.competitions, power / 100)
    competitions = competitions_needed(found, difference / 100, most.seeds, power / 100)
    otherwise: dict[Question, str] = {
        "these": _needs(f"{most.competitions} competitions", seeds, "seeds"),
        "like_these": _needs(f"{most.seeds} seeds", competitions, "competitions"),
    }
    for question, words in QUESTIONS.items():
        enough = [plan for plan in plans if getattr(plan, f"detectable_{question}") <= difference]
        fewest = min(enough, key=lambda plan: plan.runs, default=None)
        found_by = f"{fewest.competitions} competitions x {counted(fewest.seeds, 'seed')}" if fewest else ""
        result = found_by or f"none of these; {otherwise[question]}"
        points = "point" if difference == 1 else "points"
        click.echo(f"{difference:g} {points} {words}, with {power:g} % power: {result}")


def _needs(given: str, needed: float, what: str) -> str:
    return f"how many {what} {given} take is not known" if math.isnan(needed) else f"{given} take {needed:,} {what}"
