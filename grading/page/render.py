"""The HTML page: one file that carries its style, its script and its pictures."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import pandas as pd
from markupsafe import Markup

from grading.medals import Thresholds
from grading.page import attempts, sections, timeline
from grading.page import format as fmt
from grading.page.build import build_view
from grading.page.integrity import integrity_section
from grading.page.strips import GUTTER, MEDAL_SCALE, medal_strip, score_strip
from grading.page.view import KIND_GLYPHS, KIND_WORDS
from grading.statistics.aggregate import Facts, Incomplete, Uncertainty, aggregate

if TYPE_CHECKING:
    from jinja2 import Environment


def render_page(
    grades: pd.DataFrame,
    runs: pd.DataFrame | None = None,
    *,
    snapshots: pd.DataFrame | None = None,
    usage: pd.DataFrame | None = None,
    examined: Mapping[str, pd.DataFrame] | None = None,
    thresholds: Mapping[str, Thresholds] | None = None,
    conditions: Mapping[str, Mapping[str, object]] | None = None,
    percentiles: Mapping[str, Sequence[float]] | None = None,
    titles: Mapping[str, str] | None = None,
    expected: Mapping[str, str] | None = None,
    facts: Facts | None = None,
    split_sizes: Mapping[str, int] | None = None,
    incomplete: Incomplete = "exclude",
    interval: Uncertainty = "t",
    title: str = "MLE-bench results",
    generated_at: datetime | None = None,
) -> str:
    """The page as one HTML document, which asks the network for nothing.

    `grades`, `runs`, `snapshots`, `usage` and those `examined` for integrity are tables of one or several run groups.
    By competition: `thresholds` (default: what was graded against), `percentiles` (21 scores of the leaderboard, best
    first), `titles`, `expected` (competition -> split) and `facts`, see `grading.statistics.aggregate.aggregate`. `conditions` are
    further facts to state by run group; `split_sizes` the full size of each split, so that a partly run split is shown
    as such. `incomplete` and `interval` as in `grading.statistics.aggregate.aggregate`. `generated_at` defaults to now.
    Everything in the tables is untrusted and escaped.
    """
    view = build_view(grades, runs, thresholds=thresholds, percentiles=percentiles, titles=titles, facts=facts)
    counting: dict[str, Any] = {"expected": expected, "facts": facts, "incomplete": incomplete}
    found = aggregate(grades, runs, interval=interval, **counting)
    known = {(r.series.run_group, r.run_id): r.series for r in view.results}
    costs = attempts.cost_tables(view, grades, usage)
    script = _asset("page.js")
    page = _environment().get_template("page.html")
    return page.render(
        title=title,
        generated=(generated_at or datetime.now(UTC)).astimezone(UTC),
        style=Markup(_asset("page.css")),  # noqa: S704 - our own file
        script=Markup(script),  # noqa: S704 - our own file
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        view=view,
        statement=found.statement(),
        gaps=sections.gaps(view, found),
        headline=sections.headline(view, found, split_sizes or {}),
        rates=sections.rates(view, found),
        rate_names=sections.RATE_NAMES,
        totals=sections.totals(view),
        strips=[
            (
                c,
                medal_strip(c, view.series),
                score_strip(c, view.series),
                timeline.score_timeline(c, snapshots, known),
            )
            for c in view.competitions
            if c.thresholds
        ],
        passes=attempts.pass_table(view, grades),
        best=attempts.best_scores(view, grades),
        times=timeline.time_table(view, grades, snapshots),
        cost_totals=costs[0] if costs else [],
        cost_runs=costs[1] if costs else [],
        interval=interval,
        integrity=integrity_section(examined or {}, runs),
        categories=sections.categories(view, aggregate(grades, runs, by="category", **counting)),
        scale=MEDAL_SCALE,
        gutter=GUTTER,
        durations=sections.durations(view),
        troubles=[r for r in view.results if r.trouble],
        trouble_counts=sections.trouble_counts(view),
        conditions=sections.conditions(view, runs, conditions or {}),
        models=[c.id for c in view.competitions if not c.human],
        kind_words=KIND_WORDS,
        kind_glyphs=KIND_GLYPHS,
        kinds=list(KIND_WORDS),
    )


@cache
def _asset(name: str) -> str:
    return resources.files("grading.page").joinpath(name).read_text("utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import DictLoader, Environment, StrictUndefined

    environment = Environment(
        loader=DictLoader({"page.html": _asset("page.html")}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=fmt.number,
        percent=fmt.percent,
        duration=fmt.duration,
        result_title=fmt.result_title,
        money=attempts.money,
        count_of=attempts.count,
    )
    environment.globals["mean_sem"] = fmt.mean_sem
    return environment
