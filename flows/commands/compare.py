"""mlebench compare."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from common.causes import cause_of
from common.cleaning import clean
from common.errors import UsageError, UserError
from common.units import counted
from competitions import registry
from flows.commands.answers import answer, say, takes_json
from flows.commands.completion import SPLITS
from flows.commands.graded import graded
from flows.commands.options import StoreOptions, takes
from flows.commands.tables import Cell, show_table
from flows.commands.types import GRADED_GROUP
from grading.statistics.differences import MIN_COMPETITIONS, QUESTIONS
from grading.words import number

if TYPE_CHECKING:
    import pandas as pd

    from grading.statistics.compare import Comparison

_STYLES = {"better": "green", "worse": "red", "mixed": "yellow"}
_OUTCOMES = {
    "any_medal": "medal",
    "percentile": "percentile",
    "gold_medal": "gold",
    "above_median": "median",
    "valid_submission": "valid",
}
_LABELS = {"these": "THESE", "like_these": "LIKE THESE"}


@click.command("compare")
@click.argument("a", type=GRADED_GROUP)
@click.argument("b", type=GRADED_GROUP)
@click.option("--everything", is_flag=True, help="Also list competitions without changes.")
@click.option("--split", metavar="NAME", shell_complete=SPLITS, help="Compare only the competitions of this split.")
@takes(storage=StoreOptions)
@takes_json
def command(a: str, b: str, everything: bool, split: str | None, storage: StoreOptions) -> None:
    """Compare run group B with A: changes by competition, and mean paired differences.

    Seeds of a competition are averaged, then competitions are paired. SCORE A and B are mean scores; B - A has the
    standard error of their difference after ±. Two questions have intervals (95 %) and p-values of their own: would
    other runs of these competitions show the difference, and would competitions like these? p in brackets is corrected
    for the number of tests of the question (Holm). Percentile is the share of human teams that a run beats. Conditions
    in which the groups differ are named. Where one group had feedback and the other had none, or on another share, runs
    with feedback are compared by their scores on all test rows. GROUP@EDITION selects the grades of one edition. The
    comparison is also written to tables/comparisons, unless it is that of a --split or the store cannot be written.
    """
    import pandas as pd

    from grading.conditions import mark_notes, split_notes, split_of
    from grading.statistics.compare import compare
    from storage.remote import describe_error
    from storage.tables import read_table, write_frame
    from tasks.report import leaderboards_of

    if a == b:
        raise UsageError(f"{a} is compared with itself; name two groups, or two editions of one: {a}@v1 {a}@v2")
    store = storage.open()
    runs = [read_table(store, "runs", [name.partition("@")[0]]) for name in (a, b)]
    own_split = split if split in registry.own_splits() else None if split else split_of(*runs)
    all_grades = [graded(store, name) for name in (a, b)]
    grades = [_of_split(table, split, own_split) for table in all_grades]
    comparison = compare(grades[0], grades[1], leaderboards_of(*grades))
    if comparison.competitions.empty:
        raise UserError(f"{a} and {b} have no competition{f' of split {split}' if split else ''} in common")
    try:
        if split is None:
            complexity = (
                pd.concat(all_grades).drop_duplicates("competition_id").set_index("competition_id")["complexity"]
            )
            table = comparison.competitions
            table = table.assign(complexity=table["competition_id"].map(complexity), a=a, b=b)
            write_frame(store, "comparisons", f"{a}..{b}", table)
    except Exception as error:  # for example, this user may only read the store
        if cause_of(error).fault == "program":
            raise
        click.echo(f"mlebench: not written to tables/comparisons: {describe_error(error)}", err=True)
    for text in (*split_notes(pd.concat(runs), registry.own_splits(), split), *mark_notes(pd.concat(runs))):
        say(clean(text))
    different = _different(runs, (a, b), grades, comparison)
    if answer({"a": a, "b": b, "conditions": different, **_tables(comparison)}):
        return
    if different:
        click.echo(f"Conditions differ: {', '.join(map(_told, different, different.values()))}")
    if unlike := comparison.on_all_rows:
        click.echo(
            f"Runs with feedback: scores and medals are those on all test rows, a part of which agents were told "
            f"scores on, in {counted(len(unlike), 'competition')} where the other group is scored on other rows"
        )
    click.echo(f"A: {a}  B: {b}")
    first = grades[0].drop_duplicates("competition_id")
    _show(comparison, a, b, everything, set(first.loc[first["is_lower_better"].eq(True), "competition_id"]))


def _of_split(grades: pd.DataFrame, split: str | None, own_split: str | None) -> pd.DataFrame:
    """The grades of the competitions of a split; one of one's own has figures of its own, not by complexity."""
    if split is not None:
        grades = grades[grades["competition_id"].isin(registry.list(split))]
    return grades.assign(complexity=own_split) if own_split else grades


def _different(
    runs: list[pd.DataFrame], names: tuple[str, str], grades: list[pd.DataFrame], comparison: Comparison
) -> dict[str, dict[str, str]]:
    """The conditions in which the groups differ, and the values in each group, if they can be told in a word."""
    from grading.conditions import unlike_grades, unlike_values

    if not all(len(table) for table in runs):
        click.echo("mlebench: the conditions of imported grades are unknown", err=True)
    found = unlike_values(dict(zip(names, runs, strict=True)))
    editions = {name: str(table["edition"].iloc[0]) for name, table in zip(names, grades, strict=True)}
    found |= {words: editions if words == "edition" else {} for words in unlike_grades(grades)}
    seeds = comparison.competitions[["seeds_a", "seeds_b"]]
    if seeds["seeds_a"].ne(seeds["seeds_b"]).any():
        found["counted seeds"] = {name: _range(seeds[side]) for name, side in zip(names, seeds, strict=True)}
    return found


def _told(words: str, values: dict[str, str]) -> str:
    told = ", ".join(f"{name}: {clean(value)}" for name, value in values.items())
    return f"{words} ({told})" if told else words


def _range(counts: pd.Series[int]) -> str:
    low, high = counts.min(), counts.max()
    return str(low) if low == high else f"{low} to {high}"


def _tables(comparison: Comparison) -> dict[str, Any]:
    return {
        name: getattr(comparison, name) for name in ("competitions", "differences", "only_a", "only_b", "on_all_rows")
    }


def _show(comparison: Comparison, a: str, b: str, everything: bool, lower_is_better: set[str]) -> None:
    rows: list[dict[Any, Any]] = comparison.competitions.to_dict("records")
    changes: list[tuple[Cell, ...]] = []
    for row in rows:
        if row["change"] != "same" or everything:
            change = (row["change"], _STYLES.get(row["change"], ""))
            difference = _number(row["score_difference"]) + _error(row["score_sem"])
            scores = (_number(row["score_a"]), _number(row["score_b"]), difference)
            rates = (_points(row["any_medal_a"]), _points(row["any_medal_b"]))
            direction = "lower" if row["competition_id"] in lower_is_better else "higher"
            changes.append((row["competition_id"], change, direction, *scores, *rates))
    if changes:
        figures = ("SCORE A", "SCORE B", "B - A", "MEDAL A %", "MEDAL B %")
        show_table(("COMPETITION", "CHANGE", "BETTER IS", *figures), changes, right=figures)
    counts = comparison.competitions["change"].value_counts()
    click.echo(", ".join(f"{counts.get(word, 0)} {word}" for word in ("better", "worse", "mixed", "same")))
    found: dict[tuple[str, str], list[dict[Any, Any]]] = {}
    for row in comparison.differences.to_dict("records"):
        found.setdefault((row["split"], row["rate"]), []).append(row)
    averages = []
    for (split, rate), questions in found.items():
        if rate in _OUTCOMES:
            one = questions[0]
            means = (_points(one["mean_a"]), _points(one["mean_b"]), _points(one["difference"], sign=True))
            tests = (text for row in questions for text in _test(row))
            averages.append((f"{split} ({one['competitions']})", _OUTCOMES[rate], *means, *tests))
    statistics = ("A", "B", "B - A", "THESE", "P", "LIKE THESE", "P LIKE")
    show_table(("SPLIT", "OUTCOME", *statistics), averages, f"{b} - {a}, by competition, in %", right=statistics)
    click.echo(
        "THESE: 95 % interval and p-value (corrected) over other runs of these competitions; "
        "LIKE THESE: over other competitions, too"
    )
    _show_tests(comparison, {split for split, _ in found} - {"all"})
    widest = max(found, key=lambda key: (found[key][0]["competitions"], key[0] == "all"))[0]
    smallest = {row["question"]: row["smallest"] for row in found[widest, "any_medal"]}
    words = [f"{_smallest(smallest[question])} {words}" for question, words in QUESTIONS.items()]
    click.echo(f"smallest difference in medals that would be found ({widest}): {', '.join(words)}")
    for name, competition_ids in ((a, comparison.only_a), (b, comparison.only_b)):
        if competition_ids:
            click.echo(f"only in {name}, left out: {', '.join(competition_ids)}")


def _show_tests(comparison: Comparison, splits: set[str]) -> None:
    """For how many tests p is corrected, and why a question has none."""
    rows = comparison.differences
    if len(splits) == 1:  # "all" repeats it
        rows = rows[rows["split"] != "all"]
    counts = rows[rows["p_corrected"].notna()].groupby("question").size()
    if len(counts):
        words = (f"{_LABELS[str(question)]} for {counted(count, 'test')}" for question, count in counts.items())
        click.echo(f"p in brackets is corrected: {', '.join(words)}")
    if (few := len(comparison.competitions)) < MIN_COMPETITIONS:
        click.echo(f"LIKE THESE is n/a with fewer than {MIN_COMPETITIONS} competitions in common; there are {few}")


def _number(value: float) -> str:
    return "n/a" if math.isnan(value) else number(value)


def _error(value: float) -> str:
    return "" if math.isnan(value) else f" ± {number(value)}"


def _test(row: dict[Any, Any]) -> tuple[str, str]:
    """The interval and the p-values of a question; n/a if too few runs or competitions tell."""
    from grading.page.format import p_values

    if math.isnan(row["p_value"]):
        return "n/a", "n/a"
    interval = "n/a" if math.isnan(row["ci_low"]) else f"{_points(row['ci_low'])}..{_points(row['ci_high'])}"
    return interval, p_values(row["p_value"], row["p_corrected"])


def _smallest(value: float) -> str:
    return "too few to tell" if math.isnan(value) else f"{_points(value)} points"


def _points(value: float, sign: bool = False) -> str:
    """A fraction in percent, without the sign."""
    return "n/a" if math.isnan(value) else f"{100 * value:{'+' if sign else ''}.1f}"
