"""The page's integrity section: similar code side by side, findings with their quotes, familiarity and scores."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
from markupsafe import Markup

from common.cleaning import clean
from common.units import counted
from grading.integrity.findings import RULES
from grading.page.drawing import HEIGHT, WIDTH, chart, grid
from grading.page.format import chance, signed, signed_span

if TYPE_CHECKING:
    from jinja2 import Template

Name = Literal["examinations", "plagiarism", "violations", "familiarity", "familiarity_correlation"]
TABLES: tuple[Name, ...] = ("examinations", "plagiarism", "violations", "familiarity", "familiarity_correlation")
_POINT = Markup('<line class="point" x1="{0:.1f}" x2="{0:.1f}" y1="{1:.1f}" y2="{1:.1f}"><title>{2}</title></line>')


def integrity_section(tables: Mapping[str, pd.DataFrame], runs: pd.DataFrame | None = None) -> Markup:
    """The section as HTML, or empty if nothing was examined.

    `tables` has those of `TABLES` that exist, `runs` is the table of runs. Their content is untrusted and is escaped.
    """
    filled = {name: tables[name] for name in TABLES if name in tables and len(tables[name])}
    if not filled:
        return Markup()
    familiar, correlations = filled.get("familiarity"), filled.get("familiarity_correlation")
    return Markup(  # noqa: S704 - made by the template, which escapes
        _template().render(
            plagiarism=_plagiarism(filled["plagiarism"]) if "plagiarism" in filled else None,
            findings=_findings(filled["violations"]) if "violations" in filled else None,
            familiarity=_familiarity(familiar, correlations) if familiar is not None else None,
            rules=RULES,
            examined=[_clean(row) for row in filled["examinations"].to_dict("records")]
            if "examinations" in filled
            else [],
            evidence=_evidence_sentence(runs),
        )
    )


def _plagiarism(table: pd.DataFrame) -> dict[str, Any]:
    rows = table[table["flagged"].astype(bool)].sort_values("similarity", ascending=False).to_dict("records")
    shown = []
    for row in rows:
        matched = [
            {name: clean(value) if isinstance(value, str) else value for name, value in each.items()}
            for each in json.loads(row["matched"])
        ]
        shown.append({**_clean(row), "matched": matched})
    return {"pairs": len(table), "flagged": shown}


def _findings(table: pd.DataFrame) -> dict[str, Any]:
    rows = [_clean(row) for row in table.sort_values(["competition_id", "seed", "file", "line"]).to_dict("records")]
    violations = [row for row in rows if row["severity"] == "violation"]
    runs = {(row["run_group"], row["run_id"]) for row in violations}
    notices = [row for row in rows if row["severity"] != "violation"]
    return {"runs": len(runs), "violations": violations, "notices": notices}


def _familiarity(table: pd.DataFrame, correlations: pd.DataFrame | None) -> dict[str, Any]:
    drawn = table[(table["kind"] == "all") & table["human_percentile"].notna()]
    points = [
        (clean(row["competition_id"]), float(row["mean_probability"]), float(row["human_percentile"]))
        for row in drawn.to_dict("records")
    ]
    # The axis ends at full tenths, because most probabilities are in a small part of the range from 0 to 1.
    low = math.floor(10 * min((x for _, x, _ in points), default=0.0)) / 10
    high = max(math.ceil(10 * max((x for _, x, _ in points), default=1.0)) / 10, low + 0.1)
    models = ", ".join(sorted({clean(model) for model in table["model"]}))
    ends = {"low": f"{low:.1f}", "high": f"{high:.1f}"}
    return {"models": models, "chart": _scatter(points, low, high), **ends, "rows": _rows(correlations)}


def _scatter(points: list[tuple[str, float, float]], low: float, high: float) -> Markup:
    parts = grid()
    for name, x, y in points:
        # A line of length 0 with round caps remains a circle when the chart is stretched.
        title = f"{name}: {x:.3f}, better than {y:.0f} % of the teams"
        place = (WIDTH * (x - low) / (high - low), HEIGHT * (1 - y / 100), title)
        parts.append(_POINT.format(*place))
    label = f"familiarity and score of {counted(len(points), 'competition')}"
    return chart(parts, label, "rates-over-time")


def _evidence_sentence(runs: pd.DataFrame | None) -> str:
    count = 0 if runs is None or "ledger_head" not in runs else int(runs["ledger_head"].notna().sum())
    if runs is None or not count:
        return ""
    return f"{count} of {counted(len(runs), 'run')} have an evidence ledger, which mlebench verify checks."


def _rows(table: pd.DataFrame | None) -> list[dict[str, Any]]:
    return [_clean(row) for row in table.to_dict("records")] if table is not None else []


def _clean(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(name): clean(value) if isinstance(value, str) else value for name, value in row.items()}


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(signed=signed, chance=chance, counted=counted)
    environment.globals.update(nan=math.nan, signed_span=signed_span)
    return environment.from_string(resources.files("grading.page").joinpath("integrity.html").read_text("utf-8"))
