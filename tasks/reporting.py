"""From tables to aggregates and reports. No Prefect here: `mlebench report` is to answer at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from competitions import registry
from competitions.errors import UnknownCompetition
from competitions.facts import CompetitionFacts
from grading.medals import Thresholds
from grading.report import CompetitionReport, summarise
from storage.store import Store
from storage.tables import Table, read_table, write_frame
from tasks.conditions import conditions_of

if TYPE_CHECKING:
    import pandas as pd

    from grading.aggregate import Incomplete, Uncertainty

_SPLITS = ("low", "medium", "high", "dev", "demo")


def write_aggregates(
    store: Store, run_group: str, incomplete: Incomplete = "exclude", interval: Uncertainty = "t"
) -> None:
    """Write tables/aggregates/... of a group from its other tables."""
    from grading.aggregate import aggregate
    from grading.attempts import best_of, competition_table, pass_at
    from grading.over_time import over_time
    from grading.usage import usage_by_run, usage_by_series

    grades, runs, snapshots, usage = _read(store, [run_group])
    if grades.empty:
        return
    import pandas as pd

    found = {by: aggregate(grades, runs, incomplete=incomplete, by=by, interval=interval) for by in _BY}
    tables: dict[Table, pd.DataFrame] = {
        name: pd.concat([getattr(each, part).assign(by=by) for by, each in found.items()], ignore_index=True)
        for name, part in _PARTS.items()
    }
    settings = {"incomplete": incomplete, "interval": interval}
    tables["aggregates/rates"] = tables["aggregates/rates"].assign(**settings)
    tables["aggregates/pass_at_k"] = pass_at(grades)
    tables["aggregates/best_of_k"] = best_of(grades)
    tables["aggregates/competitions"] = competition_table(grades, _percentiles(_facts(grades)))
    tables["aggregates/over_time"] = over_time(grades, snapshots)
    tables["aggregates/usage_by_run"] = usage_by_run(usage)
    tables["aggregates/usage"] = usage_by_series(grades, usage) if len(usage) else usage
    for name, table in tables.items():
        if "seed" in table and table["seed"].map(type).nunique() > 1:  # a run without a seed goes by its name
            table = table.assign(seed=table["seed"].astype(str))
        write_frame(store, name, run_group, table)


_BY: tuple[Any, ...] = ("complexity", "category")
_PARTS: dict[Table, str] = {
    "aggregates/rates": "rates",
    "aggregates/by_seed": "by_seed",
    "aggregates/gaps": "gaps",
}


def write_report(
    store: Store,
    run_groups: list[str],
    *,
    incomplete: Incomplete = "exclude",
    interval: Uncertainty = "t",
) -> str:
    """summary.json, report.html and report.md of some run groups, from the tables; returns the HTML's URL."""
    from grading.page import render_markdown, render_page

    grades, runs, snapshots, usage = _read(store, run_groups)
    folder = store.url("reports", "+".join(run_groups))
    facts = _facts(grades)
    thresholds = {name: Thresholds.of(each) for name, each in facts.items()}
    title = f"MLE-bench: {' and '.join(run_groups)}"
    page = render_page(
        grades,
        runs,
        snapshots=snapshots,
        usage=usage,
        thresholds=thresholds,
        conditions={group: conditions_of(runs, group) for group in run_groups},
        percentiles=_percentiles(facts),
        titles={name: each.name for name, each in facts.items()},
        split_sizes={split: len(registry.list(split)) for split in _SPLITS},
        incomplete=incomplete,
        interval=interval,
        title=title,
    )
    store.write(f"{folder}/report.html", page.encode())
    markdown = render_markdown(
        grades, runs, snapshots=snapshots, usage=usage, thresholds=thresholds, incomplete=incomplete, title=title
    )
    store.write(f"{folder}/report.md", markdown.encode())
    store.write(f"{folder}/summary.json", summarise(reports_of(grades)).to_json().encode())
    return f"{folder}/report.html"


def reports_of(grades: pd.DataFrame) -> list[CompetitionReport]:
    """The published reports of rows of tables/grades, in their order."""
    import pandas as pd

    names = list(CompetitionReport.model_fields)
    records = grades[names].to_dict("records") if len(grades) else []
    return [
        CompetitionReport.model_validate({k: None if pd.isna(v) else v for k, v in record.items()})
        for record in records
    ]


def _read(store: Store, run_groups: list[str]) -> tuple[pd.DataFrame, ...]:
    names: tuple[Table, ...] = ("grades", "runs", "snapshots", "usage")
    return tuple(read_table(store, name, run_groups) for name in names)


def _facts(grades: pd.DataFrame) -> dict[str, CompetitionFacts]:
    """What is known of the competitions; imported reports may name others."""
    found = {}
    for name in sorted(set(grades["competition_id"])) if len(grades) else []:
        try:
            found[name] = registry.get(name).facts
        except UnknownCompetition:
            continue
    return found


def _percentiles(facts: dict[str, CompetitionFacts]) -> dict[str, Any]:
    return {name: each.leaderboard.percentiles for name, each in facts.items() if each.leaderboard.percentiles}
