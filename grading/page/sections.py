"""The content of the page's sections, computed from the view and the aggregate."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from common.cleaning import clean
from common.units import counted
from grading.conditions import SWITCHES, used, values_of
from grading.page import format as fmt
from grading.page.order import repeated_by_all
from grading.page.results import Results
from grading.page.scales import medal_position
from grading.page.strip_plots import duration_strip
from grading.page.view import CompetitionView, Result, Series, View
from grading.statistics.aggregate import Aggregate
from grading.statistics.attempts import percentile_of
from grading.statistics.counting import Cells, cells_of
from grading.statistics.differences import differences, letters
from grading.statistics.seeds import mean
from grading.statistics.sensitivity import sensitivity
from grading.statistics.series import BENCHMARK_SPLITS, SERIES, split_order
from grading.words import KIND_WORDS

# The columns of the paper's tables, in its order.
RATE_NAMES = {
    "submission_exists": "Made submission",
    "valid_submission": "Valid submission",
    "above_median": "Above median",
    "bronze_medal": "Bronze",
    "silver_medal": "Silver",
    "gold_medal": "Gold",
    "any_medal": "Any medal",
}
_SIZES = ("memory_bytes", "disk_bytes")
# Further columns of the table of runs, shown if they were recorded.
_RUN_FACTS = {
    "edition_version": "Version of the edition",
    "network": "Network",
    "obfuscated": "Obfuscated descriptions",
    "scorer": "Scorer",
    "feedback": "Feedback",
    "feedback_calls_per_day": "Public scores a day",
    "split": "Split",
    "split_version": "Version of the split",
    "split_digest": "Competitions of the split",
    "check_marks": "CHECK marks",
    "knowledge_cutoff": "Cutoff of the model",
    "image": "Image",
    "image_digest": "Image digest",
    "cpus": "Processors",
    "memory_bytes": "Memory limit",
    "disk_bytes": "Disk limit",
    "enforcement": "Limits enforced by",
    "gpus": "GPUs",
    "hardware": "Run on",
    "limits": "Limits",
    "package_version": "Run with mlebench-pipeline",
    "git_commit": "Source of the runs",
}
_NICE_DURATIONS = [1, 2, 4, 10, 20, 40, 60, 120, 240, 600, 1200, 2400, 3600, 7200, 4 * 3600, 8 * 3600, 12 * 3600, 86400]


def rates_by_split(view: View, aggregate: Aggregate, sizes: Mapping[str, int]) -> dict[tuple[int, str], dict[Any, Any]]:
    """The rate of any medal by series index and split, with `full`, `partial` and `repeats`."""
    chosen = aggregate.rates[aggregate.rates["rate"] == "any_medal"]
    present = list(dict.fromkeys(chosen["split"]))
    sizes = {"all": sum(sizes.get(split, 0) for split in BENCHMARK_SPLITS), **sizes}
    cells: dict[tuple[int, str], dict[Any, Any]] = {}
    for row in chosen.to_dict("records"):
        full = sizes.get(row["split"]) or row["competitions"]
        repeats = repeated_by_all(present) if row["split"] == "all" else None
        partial = row["competitions"] < full and not repeats
        cells[view.series_of(row).index, row["split"]] = {**row, "full": full, "partial": partial, "repeats": repeats}
    return cells


def covered(view: View, results: Results, aggregate: Aggregate) -> list[tuple[Series, str]]:
    """Over which competitions rates are, where these are not all of a split: a sentence for each series and split."""
    sentences = []
    for (index, split), cell in rates_by_split(view, aggregate, results.split_sizes).items():
        if not cell["partial"]:
            continue
        ran = {c.id for c in view.competitions if any(key[0] == index for key in c.results)}
        names_by_reason: dict[str, list[str]] = {}
        for name, (own_split, reason) in results.unavailable.items():
            if name not in ran and (own_split == split or (split == "all" and own_split in BENCHMARK_SPLITS)):
                names_by_reason.setdefault(reason, []).append(name)
        without = "".join(f", without {', '.join(names)}: {reason}" for reason, names in names_by_reason.items())
        text = f"{split}: over {cell['competitions']} of {counted(cell['full'], 'competition')}{without}"
        sentences.append((view.series[index], clean(text)))
    return sentences


def apart(view: View, results: Results, aggregate: Aggregate) -> dict[str, Any] | None:
    """Which series can be told apart, by split; None where no pair has a competition in common.

    Keys: `letters` by series index and split, and `pairs` (split, outcome, better series, worse series, difference),
    those of the split with the most competitions first.
    """
    by_split: dict[str, list[Cells]] = {}
    for cells in cells_of(results.grades, results.runs, results.counting):
        if cells.counted:
            by_split.setdefault(cells.split, []).append(cells)
    if repeated_by_all(list(by_split)):
        by_split.pop("all", None)
    of_medals = aggregate.rates[aggregate.rates["rate"] == "any_medal"].to_dict("records")
    means = {(view.series_of(row).index, row["split"]): float(row["mean"]) for row in of_medals}
    named: dict[tuple[int, str], str] = {}
    pairs = []
    widest = max(by_split, key=lambda split: max(len(cells.counted) for cells in by_split[split]), default=None)
    for split, found in sorted(by_split.items(), key=lambda each: each[0] != widest):
        # From the best to the worst, so that the letter of the best group is the first one.
        chosen = sorted(found, key=lambda cells: -means[view.series_of(cells.series).index, cells.split])
        series = [view.series_of(cells.series) for cells in chosen]
        medals = differences([cells.outcomes("any_medal") for cells in chosen])
        shares = differences([cells.percentiles(results.percentiles) for cells in chosen], binary=False)
        texts = letters(len(chosen), medals)
        named |= {(each.index, split): text for each, text in zip(series, texts, strict=True) if text}
        # Of many agents, there would be more pairs than anybody reads.
        pairs += [
            (split, outcome, series[each.better], series[each.worse], each.paired)
            for outcome, measured in (("any medal", medals), ("percentile", shares))
            for each in (measured if not view.crowded or split == widest else ())
        ]
    return {"letters": named, "pairs": pairs} if pairs else None


VARIANTS = {
    "available": "graded runs of each competition",
    "excluded": "seeds with ungraded runs left out",
    "padded": "ungraded runs counted as failures",
    "no leaks": "without competitions with known leaks",
    "no findings": "runs with findings counted as failures",
}


def sensitive(view: View, results: Results) -> tuple[list[str], list[tuple[Series, str, dict[str, Any]]]]:
    """The splits, and rows (series, decision, rates by split) of the table; no rows if no agent has different ones."""
    aggregate = sensitivity(results.grades, results.runs, results.counting, results.leaking, results.findings)
    splits = sorted(set(aggregate["split"]), key=split_order)
    if repeated_by_all(splits):
        splits.remove("all")
    rows: dict[tuple[int, str], dict[str, Any]] = {}
    for row in aggregate.to_dict("records"):
        rows.setdefault((view.series_of(row).index, str(row["variant"])), {})[str(row["split"])] = row
    in_order = sorted(rows.items(), key=lambda each: each[0][0])
    seen: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    for (index, _), cells in in_order:
        means = tuple(fmt.percent(cells[split]["mean"]) if split in cells else fmt.DASH for split in splits)
        seen.setdefault((view.series[index].run_group, view.series[index].agent), set()).add(means)
    if all(len(different) == 1 for different in seen.values()):
        return splits, []
    return splits, [(view.series[index], VARIANTS[variant], cells) for (index, variant), cells in in_order]


def bounded(view: View, aggregate: Aggregate) -> list[tuple[Series, str, dict[Any, Any]]]:
    """Any-medal rates of which runs are missing: what is missing is bounded by all of it failing or earning a medal."""
    missing = aggregate.rates[(aggregate.rates["rate"] == "any_medal") & (aggregate.rates["missing"] > 0)]
    if repeated_by_all(list(aggregate.rates["split"].unique())):
        missing = missing[missing["split"] != "all"]
    return [(view.series_of(row), str(row["split"]), row) for row in missing.to_dict("records")]


def categories(view: View, aggregate: Aggregate) -> list[tuple[str, int, dict[int, dict[Any, Any]]]]:
    """(category, competitions, any-medal rate by series index)."""
    rows: dict[str, dict[int, dict[Any, Any]]] = {}
    for row in aggregate.rates[(aggregate.rates["rate"] == "any_medal") & (aggregate.rates["split"] != "all")].to_dict(
        "records"
    ):
        rows.setdefault(row["split"], {})[view.series_of(row).index] = row
    return [
        (clean(name), max(r["competitions"] for r in cells.values()), cells) for name, cells in sorted(rows.items())
    ]


def rates(view: View, aggregate: Aggregate) -> list[tuple[Series, str, dict[str, Any]]]:
    """Rows (series, split, rates by name) as in the paper's second table."""
    rows: dict[tuple[int, str], dict[str, Any]] = {}
    repeated = repeated_by_all(list(aggregate.rates["split"].unique()))
    for row in aggregate.rates.to_dict("records"):
        if repeated and row["split"] == "all":
            continue
        rows.setdefault((view.series_of(row).index, row["split"]), {})[row["rate"]] = row
    return [(view.series[key[0]], key[1], rows[key]) for key in sorted(rows, key=lambda key: key[0])]


def percentiles(view: View, results: Results) -> dict[tuple[int, str], float]:
    """Mean human percentile by series index and split, where it is known."""
    aggregate = {
        (view.series_of(cells.series).index, cells.split): percentile_of(cells, results.percentiles)
        for cells in cells_of(results.grades, results.runs, results.counting)
    }
    return {key: value for key, value in aggregate.items() if not math.isnan(value)}


def gaps(view: View, aggregate: Aggregate, unavailable: Mapping[str, tuple[str, str]]) -> list[str]:
    """One line for each ungraded submission, even if it counts in several splits.

    `unavailable` is that of `Results`; it says why such a competition was not run at all.
    """
    words = {"missing": "no grade", "failed": "grading failed", "planned": "planned and never run"}
    rows = aggregate.gaps.drop_duplicates([*SERIES, "seed", "competition_id"]).to_dict("records")
    where = [f"{clean(row['competition_id'])}, {view.series_of(row).label}, seed {clean(row['seed'])}" for row in rows]
    ran = {c.id for c in view.competitions}
    reasons = {name: f"; {reason}" for name, (_, reason) in unavailable.items() if name not in ran}
    why = [f"{words[row['reason']]}{reasons.get(row['competition_id'], '')}" for row in rows]
    return [f"{place}: {clean(text)}" for place, text in zip(where, why, strict=True)]


def open_leaks(view: View, leaks: Mapping[tuple[str, str], Sequence[str]]) -> list[tuple[str, str, str]]:
    """(edition, competition, names of known issues) where the edition that was run gives answers away."""
    editions = sorted({series.edition for series in view.series})
    pairs = [(edition, competition.id) for edition in editions for competition in view.competitions]
    return [(edition, name, ", ".join(leaks[edition, name])) for edition, name in pairs if leaks.get((edition, name))]


def comparability(view: View, stated: Mapping[tuple[str, str], tuple[str, str]]) -> list[tuple[str, str, str, str]]:
    """(edition, competition, verdict, reason) where scores of the edition compare less well with medal thresholds."""
    editions = sorted({series.edition for series in view.series})
    pairs = [(edition, competition.id) for edition in editions for competition in view.competitions]
    return [(*pair, *stated[pair]) for pair in pairs if stated.get(pair, ("fully", ""))[0] != "fully"]


def by_difference(view: View) -> list[CompetitionView]:
    """The competitions, those first in which agents differ most: in their mean place on the scale of medals.

    With one agent, those first in which its seeds differ most.
    """

    def places(competition: CompetitionView) -> list[float]:
        by_series: dict[int, list[float]] = {}
        for result in competition.results.values():
            limits = competition.thresholds
            place = medal_position(result.score or 0.0, limits) if limits is not None and result.scored else 0.0
            by_series.setdefault(result.series.index, []).append(place)
        means = [mean(own) for own in by_series.values()]
        return means if len(view.series) > 1 else [place for own in by_series.values() for place in own]

    def spread(competition: CompetitionView) -> float:
        found = places(competition)
        return max(found, default=0.0) - min(found, default=0.0)

    return sorted(view.competitions, key=lambda competition: -round(spread(competition), 6))


def choices(view: View) -> dict[str, list[str]]:
    """The values by which competitions can be filtered, by name of the filter."""
    splits = sorted({c.complexity for c in view.competitions}, key=split_order)
    return {"split": splits, "category": sorted({c.category for c in view.competitions if c.category})}


def totals(view: View) -> dict[tuple[int, Any], int]:
    """Number of medals in each column of the matrix."""
    medals = [(r.series.index, r.seed) for r in view.results if r.kind in ("gold", "silver", "bronze")]
    return dict(Counter(medals))


def durations(view: View) -> dict[str, Any] | None:
    """The chart of durations: its rows, its axis, number and total of each series; None if no duration is known."""
    timed = [r for r in view.results if r.duration is not None and not math.isnan(r.duration)]
    if not timed:
        return None
    most = max(r.duration or 0.0 for r in timed)
    longest = next((float(d) for d in _NICE_DURATIONS if d >= most), math.ceil(most / 86400) * 86400.0)
    totals = {s.index: sum(r.duration or 0.0 for r in timed if r.series == s) for s in view.series}
    counts = Counter(r.series.index for r in timed)
    limits = sorted({r.time_limit for r in timed if r.time_limit})
    return {
        "rows": []
        if view.crowded
        else [(c, duration_strip(c, view.series, longest, not view.lean)) for c in view.competitions],
        "ticks": [(at, fmt.duration(longest * at / 100)) for at in (0, 25, 50, 75, 100)],
        "totals": [(s, counts[s.index], totals[s.index]) for s in view.series if counts[s.index]],
        "limits": [fmt.duration(limit) for limit in limits],
        "limit_fits": any(limit <= longest for limit in limits),
    }


def failure_counts(view: View) -> list[tuple[str, int]]:
    """Causes of failures with their numbers, the most frequent first."""

    def cause(result: Result) -> str:
        ended = result.status not in (None, "completed")
        return f"{result.ended}, {KIND_WORDS[result.kind]}" if ended else KIND_WORDS[result.kind]

    return Counter(cause(r) for r in view.results if r.failure).most_common()


def conditions(
    view: View, runs: pd.DataFrame | None, given: Mapping[str, Mapping[str, object]]
) -> list[tuple[str, list[str]]]:
    """Rows (label, one text per series): facts about the runs from the tables, then those in `given`."""
    columns: list[dict[str, str]] = []
    on = {name for name in SWITCHES if used(runs, name)}  # where any run has it on, the others say no
    for series in view.series:
        own = _runs_of(series, runs)
        facts = {
            "Run group": series.run_group,
            "Agent": series.agent,
            "Edition": series.edition,
            "Seeds": ", ".join(map(str, series.seeds)),
            "Runs": str(sum(r.series == series for r in view.results)),
        }
        if own is not None and not own.empty:
            facts["Backend"] = _unique(own, "backend")
            facts["Time limit"] = ", ".join(
                fmt.duration(limit) for limit in sorted(own["time_limit_seconds"].dropna().unique())
            )
            facts["First start"] = _moment(own["started_at"].min())
            facts["Last end"] = _moment(own["finished_at"].max())
            facts["Code fingerprint"] = _unique(own, "code_fingerprint")
            if "resumed" in own and (count := int((own["resumed"].fillna(0) > 0).sum())):
                facts["Runs resumed from a checkpoint"] = str(count)
            stated = {
                label: (values_of if column in on else _unique)(own, column) for column, label in _RUN_FACTS.items()
            }
            facts |= {label: text for label, text in stated.items() if text}
        more = {clean(label): clean(value) for label, value in given.get(series.run_group, {}).items()}
        columns.append({**facts, **more})
    labels = dict.fromkeys(label for facts in columns for label in facts)
    return [(label, [facts.get(label) or fmt.DASH for facts in columns]) for label in labels]


def _runs_of(series: Series, runs: pd.DataFrame | None) -> pd.DataFrame | None:
    # Not filtered by edition, because regrading a group in another edition does not change its runs.
    if runs is None or runs.empty:
        return None
    return runs[(runs["run_group"] == series.run_group) & (runs["agent"] == series.agent)]


def _unique(runs: pd.DataFrame, column: str) -> str:
    aggregate = runs[column].dropna() if column in runs else pd.Series(dtype=object)
    if all(isinstance(value, bool) for value in aggregate.tolist()):
        values = ["yes" if value else "no" for value in sorted(aggregate.unique())]
    elif pd.api.types.is_numeric_dtype(aggregate):
        values = [fmt.size(value) if column in _SIZES else fmt.number(value) for value in sorted(aggregate.unique())]
    else:
        values = [clean(value) for value in sorted(aggregate.astype(str).unique())]
    return ", ".join(values) if len(values) <= 3 else f"{', '.join(values[:2])} and {len(values) - 2} others"


def _moment(text: object) -> str:
    if pd.isna(text):  # type: ignore[call-overload]
        return ""
    try:
        return datetime.fromisoformat(str(text)).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    except ValueError:
        return clean(text)
