"""Results as text: a Markdown summary, and the rows of a table for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from common.markdown import Markdown, escape, table
from grading.medals import Thresholds
from grading.page import format as fmt
from grading.page.attempts import cost_tables, count, money, pass_table
from grading.page.build import build_view
from grading.page.published import HEADER, PublishedRows, published_rows
from grading.page.render import TITLE
from grading.page.sections import RATE_NAMES, comparability, covered, gaps, open_leaks, percentiles, rates
from grading.page.timeline import time_table
from grading.page.view import Result
from grading.words import KIND_GLYPHS, KIND_WORDS, Kind

if TYPE_CHECKING:
    import pandas as pd

    from grading.page.results import Results


@dataclass(frozen=True)
class TableCell:
    """The result of one run: its text, and its kind, which the caller maps to a style."""

    text: str
    kind: Kind | None  # None if this seed did not run this competition


@dataclass(frozen=True)
class MedalTable:
    """One row per competition: its id, its split, then one cell for each of `columns` (series and seeds)."""

    columns: list[str]
    rows: list[tuple[str, str, list[TableCell]]]
    model_leaderboards: list[str]  # competitions whose thresholds come from trained models instead of human teams


def medal_table(
    grades: pd.DataFrame, runs: pd.DataFrame | None = None, *, thresholds: Mapping[str, Thresholds] | None = None
) -> MedalTable:
    """Scores and medals as plain text without markup or control characters. The caller renders the table."""
    view = build_view(grades, runs, thresholds=thresholds)
    several = len(view.series) > 1
    columns = [f"{series.label}, seed {seed}" if several else f"seed {seed}" for series, seed in view.columns]
    rows = []
    for competition in view.competitions:
        cells = []
        for series, seed in view.columns:
            result = competition.results.get((series.index, seed))
            if result is None:
                cells.append(TableCell(fmt.DASH, None))
            elif result.score is None:
                cells.append(TableCell(KIND_WORDS[result.kind], result.kind))
            else:
                word = {"above": " above median", "below": ""}.get(result.kind, f" {result.kind}")
                cells.append(TableCell(fmt.number(result.score) + word, result.kind))
        rows.append((competition.id, competition.complexity, cells))
    columns = ["competition", "split", *columns]
    return MedalTable(columns, rows, [c.id for c in view.competitions if not c.human])


def render_markdown(results: Results, title: str = TITLE) -> str:
    """A short summary in Markdown: rates by split, the medal matrix, and failures.

    Text from agents is escaped.
    """
    chosen, aggregate, view = results.chosen, results.aggregate(), results.view
    published = published_rows(view, chosen)
    lines = [f"# {escape(title)}", "", *(f"Run {escape(text)}.\n" for text in published.switched_on)]
    lines += [f"{escape(text)}\n" for text in results.notes]
    lines += ["Rates in %, with 95 % intervals over other runs of these competitions.", ""]
    lines += [
        "“Other competitions” is the interval of any medal over other competitions like these, and other runs.",
        "",
    ]
    beaten = percentiles(view, results)
    lines += table(
        ["Agent", "Split", "Competitions", "Seeds", *RATE_NAMES.values(), "Other competitions", "Human percentile"],
        [
            [
                f"{series.agent} ({series.run_group}, {series.edition}{', feedback' * series.feedback})",
                split,
                str(values["any_medal"]["competitions"]),
                str(values["any_medal"]["seeds"]),
                *(Markdown(fmt.with_interval(values[name])) for name in RATE_NAMES),
                fmt.span(values["any_medal"]["both_low"], values["any_medal"]["both_high"]),
                fmt.DASH if (share := beaten.get((series.index, split))) is None else f"{share:.1f}",
            ]
            for series, split, values in rates(view, aggregate)
        ],
    )
    over = covered(view, results, aggregate)
    lines += ["", *(f"- {escape(s.label)}, {escape(text)}" for s, text in over)] if over else []
    lines += ["", "## Published row", "", *_published(published)]
    lines += ["", aggregate.statement(), *(f"- {escape(gap)}" for gap in gaps(view, aggregate, results.unavailable))]
    models = [escape(c.id) for c in view.competitions if not c.human]
    if models:
        lines += ["", f"Compared with trained models instead of human teams: {', '.join(models)}."]

    passes = pass_table(view, results)
    if passes:
        ks, several = passes
        lines += ["", "## Several attempts", "", "pass@k of any medal, in %; 95 % interval over competitions.", ""]
        rows = [[s.label, split, *cells] for s, split, cells in several]
        lines += table(["Agent", "Split", *(f"k = {k}" for k in ks)], rows)
    times = time_table(view, results)
    if times:
        lines += ["", "## Any medal over time", ""]
        rows = [[s.label, split, *cells] for s, split, cells in times.rows]
        lines += table(["Agent", "Split", *times.moments], rows)
    costs = cost_tables(view, chosen)
    if costs:
        lines += ["", "## Cost", ""]
        lines += table(
            ["Agent", "Runs", "Tokens in", "Tokens out", "Cost", "Cost per run", "Cost per medal"],
            [
                [s.label, row["runs_with_usage"], count(row["input_tokens"]), count(row["output_tokens"])]
                + [Markdown(money(row[name])) for name in ("cost_usd", "cost_per_run", "cost_per_medal")]
                for s, row in costs[0]
            ],
        )

    lines += ["", "## Medals", ""]
    lines += table(
        ["Competition", *(f"{series.label} / {seed}" for series, seed in view.columns)],
        [
            [c.id, *(_glyph(c.results.get((series.index, seed))) for series, seed in view.columns)]
            for c in view.competitions
        ],
    )
    lines += ["", "; ".join(f"{KIND_GLYPHS[kind]} {word}" for kind, word in KIND_WORDS.items()) + "."]

    leaks = open_leaks(view, results.leaks)
    if leaks:
        lines += ["", "## Leaks left open", "", "Known issues by which the edition gives answers away.", ""]
        lines += table(["Edition", "Competition", "Known issues"], leaks)

    compared = comparability(view, results.comparability)
    if compared:
        lines += ["", "## Comparison with people", ""]
        lines += ["Competitions whose test set or metric is not as on the leaderboard that medals are taken from.", ""]
        heads = ["Edition", "Competition", "Comparable", "Because"]
        lines += table(heads, compared)

    failures = [result for result in view.results if result.failure]
    if failures:
        lines += ["", "## Failures", ""]
        for r in failures:
            ended = [] if r.status in (None, "completed") else [escape(r.ended)]
            what = ", ".join([*ended, KIND_WORDS[r.kind]])
            where = escape(f"{r.competition_id}, {r.series.label}, seed {r.seed}")
            lines.append(f"- {where}: {what}" + (f": {escape(r.cause)}" if r.cause else ""))
    return "\n".join(lines) + "\n"


def _published(published: PublishedRows) -> list[str]:
    """The published rows, escaped, with the deviations from the published conditions."""
    lines: list[str] = [*table(HEADER, [cells for _, cells in published.rows])]
    if published.unlike:
        lines += ["", f"Not a ranking: the conditions differ in {escape(', '.join(published.stated))}."]
    lines.append("")
    return lines + [
        f"- {escape(s.label)}: {escape('; '.join(away) or 'as published')}" for s, away in published.deviations
    ]


def _glyph(result: Result | None) -> str:
    return fmt.DASH if result is None else KIND_GLYPHS[result.kind]
