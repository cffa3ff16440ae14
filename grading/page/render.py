"""Render the HTML page, one file that includes its style, script and charts."""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from markupsafe import Markup

from common import plain_json
from common.cleaning import clean
from common.units import counted
from competitions.registry import RESERVED
from grading.page import attempts, links, sections, timeline
from grading.page import format as fmt
from grading.page.contamination import contamination_section
from grading.page.efficiency import efficiency
from grading.page.figures import figures
from grading.page.generalisation import generalisation_section
from grading.page.headline import PUBLISHED_AT, PUBLISHED_ON, headline
from grading.page.integrity import integrity_section
from grading.page.noise import noise_section
from grading.page.public_scores import public_scores_section
from grading.page.published import HEADER, published_rows
from grading.page.ranks import distributions, profiles, ranks_section
from grading.page.strip_plots import GUTTER, MEDAL_SCALE, medal_bands, medal_strip, score_strip
from grading.page.terms import Terms
from grading.statistics.differences import MIN_COMPETITIONS
from grading.words import KIND_GLYPHS, KIND_WORDS

if TYPE_CHECKING:
    from jinja2 import Environment

    from grading.page.results import Results
    from grading.page.view import View

TITLE = "MLE-bench results"
_TEMPLATES = (
    "head.html",
    "page.html",
    "headline.html",
    "analysis.html",
    "runs.html",
    "episodes.html",
    "check.html",
    "macros.html",
)
_FEW_RESULTS = 60  # up to which the page is short enough to show its runs at once


def render_page(results: Results, title: str = TITLE, generated_at: datetime | None = None) -> str:
    """The page as one HTML document, which makes no network requests.

    The content of the tables is untrusted and is escaped. `generated_at` defaults to now.
    """
    view = results.view
    aggregate, chosen = results.aggregate(), results.chosen
    snapshots = timeline.snapshots_of(view, chosen.snapshots)
    apart = sections.apart(view, results, aggregate)
    beaten, leaky = sections.percentiles(view, results), set().union(*results.leaking.values())
    costs = attempts.cost_tables(view, chosen)
    told = {
        "sizes": results.split_sizes,
        "percentiles": beaten,
        "letters": {} if apart is None else apart["letters"],
        "usage": {series.index: row for series, row in costs[0]} if costs else {},
    }
    rates = aggregate.rates[aggregate.rates["rate"] == "any_medal"].to_dict("records")
    head = headline(view, rates, told)
    spread = distributions(view, results, head.chosen)
    competitions = sections.by_difference(view)
    numbers = {id(result): number for number, result in enumerate(view.results)}
    listed = [r for r in view.results if r.failure and not r.late]
    page = environment().get_template("page.html")
    return page.render(
        title=title,
        term=Terms(),
        generated=(generated_at or datetime.now(UTC)).astimezone(UTC),
        **style_and_script(),
        view=view,
        competitions=competitions,
        notes=[clean(text) for text in results.notes],
        statement=aggregate.statement(),
        covered=sections.covered(view, results, aggregate),
        gaps=sections.gaps(view, aggregate, results.unavailable),
        head=head,
        ranks=ranks_section(view, results, head.chosen, spread),
        profiles=profiles(view, spread),
        one_agent=len(view.series) == 1,
        differing=_differing(view),
        published_on=PUBLISHED_ON,
        published_at=PUBLISHED_AT,
        apart=apart,
        leaky=leaky,
        small=len(view.results) <= _FEW_RESULTS,
        row=lambda result: numbers[id(result)],
        files=links.links(view, chosen),
        root=results.root,
        groups_of=plain_json.dumps({series.label: series.run_group for series in view.series}),
        choices=[(name, values) for name, values in sections.choices(view).items() if len(values) > 1],
        bounded=sections.bounded(view, aggregate),
        published=published_rows(view, chosen),
        published_header=HEADER,
        sensitive=sections.sensitive(view, results),
        rates=sections.rates(view, aggregate),
        rate_names=sections.RATE_NAMES,
        beaten=beaten,
        totals=sections.totals(view),
        public_scores=public_scores_section(view, chosen),
        generalised=generalisation_section(view, chosen),
        contaminated=contamination_section(view, results),
        noise=noise_section(view, chosen),
        plots=[
            (
                c,
                medal_strip(c, view.series, not view.lean, view.crowded),
                score_strip(c, view.series, not view.lean),
                timeline.score_timeline(c, snapshots.get(c.id, ()), not view.lean),
            )
            for c in competitions
            if c.thresholds
        ],
        passes=attempts.pass_table(view, results),
        best=attempts.best_scores(view, results),
        figures=figures(view, results, aggregate),
        against=efficiency(view, results, told["usage"], head.chosen),
        times=timeline.time_table(view, results),
        cost_totals=costs[0] if costs else [],
        cost_runs=costs[1] if costs else [],
        integrity=integrity_section(chosen.examined, chosen.runs),
        categories=sections.categories(view, results.aggregate("category")),
        scale=MEDAL_SCALE,
        bands=medal_bands(view.series),
        gutter=GUTTER,
        durations=sections.durations(view),
        failures=listed,
        unlisted=sum(r.failure for r in view.results) - len(listed),
        failure_counts=sections.failure_counts(view),
        conditions=sections.conditions(view, chosen.runs, results.conditions),
        leaks=sections.open_leaks(view, results.leaks),
        comparability=sections.comparability(view, results.comparability),
        models=[c.id for c in view.competitions if not c.human],
        kind_words=KIND_WORDS,
        kind_glyphs=KIND_GLYPHS,
        kinds=list(KIND_WORDS),
        min_competitions=MIN_COMPETITIONS,
    )


def _differing(view: View) -> str:
    """What the order of competitions goes by; empty where there is nothing to order, or nothing that differs."""
    if len(view.competitions) < 2 or len(view.columns) < 2:
        return ""
    return "agents" if len(view.series) > 1 else "seeds"


@cache
def style_and_script(further_style: str = "") -> dict[str, str]:
    """What `head.html` and the end of a page need: the style, the script, and its hash for the content policy.

    `further_style` is the name of a file whose rules come after those of all pages.
    """
    script = _asset("page.js")
    return {
        "style": Markup(_asset("page.css") + (_asset(further_style) if further_style else "")),  # noqa: S704 - our files
        "script": Markup(script),  # noqa: S704 - our own file
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }


def _asset(name: str) -> str:
    return resources.files("grading.page").joinpath(name).read_text("utf-8")


@cache
def environment() -> Environment:
    """The templates of pages, which escape what they are given."""
    from jinja2 import DictLoader, Environment, StrictUndefined

    environment = Environment(
        loader=DictLoader({name: _asset(name) for name in _TEMPLATES}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        heading=lambda split: split.capitalize() if split in RESERVED else split,
        number=fmt.number,
        percent=fmt.percent,
        duration=fmt.duration,
        signed=fmt.signed,
        chance=fmt.chance,
        result_title=fmt.result_title,
        money=attempts.money,
        count_of=attempts.count,
        amount=attempts.amount,
        counted=counted,
        extract=lambda name, texts: texts[name],
    )
    environment.globals.update(
        with_interval=fmt.with_interval, p_values=fmt.p_values, span=fmt.span, signed_span=fmt.signed_span
    )
    return environment
