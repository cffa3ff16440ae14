"""Make aggregates and reports from tables. This does not import Prefect, so that `mlebench report` starts quickly."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from competitions import registry
from competitions.editions import EDITIONS, Edition
from competitions.errors import BadCompetition, UnknownCompetition
from competitions.facts import CompetitionFacts
from grading.conditions import mark_notes, report_conditions, split_notes, split_of
from grading.medals import STORED, Thresholds
from grading.report import CompetitionReport, summarise
from storage.runs.folders import records_of
from storage.runs.own_validations import read_own_validations
from storage.store import Store
from storage.tables import Table, read_table, write_frame, write_table
from storage.training_mark import marked
from tasks.report_links import report_links

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from grading.statistics.counting import Counting, Incomplete

_MAX_NAME_LENGTH = 160
_SPLITS = ("low", "medium", "high", "dev", "demo")


def aggregate_group(store: Store, run_group: str) -> str | None:
    """Write the tables of a group from its records, and its reports; returns the URL of the HTML report.

    Returns None, and writes no report, if no run of the group is graded.
    """
    return write_report(store, [run_group]) if write_tables(store, run_group) else None


def write_tables(store: Store, run_group: str) -> bool:
    """Write tables/runs, grades, snapshots, usage, validations and own_validations from the records; the aggregates.

    Returns whether any run is graded.
    """
    records = list(records_of(store, run_group))
    write_table(store, "runs", run_group, (record.run.to_row() for record in records if record.run))
    write_table(store, "grades", run_group, (grade.to_row() for record in records for grade in record.grades))
    # Graded snapshots are stored with the grade, requests to language models with the run.
    snapshots = (snapshot for record in records if record.grades for snapshot in record.snapshots)
    write_table(store, "snapshots", run_group, (snapshot.to_row() for snapshot in snapshots))
    write_table(store, "usage", run_group, (request.to_row() for record in records for request in record.usage))
    validation_rows = (validation.to_row() for record in records for validation in record.validations)
    write_table(store, "validations", run_group, validation_rows)
    finished = [partial(read_own_validations, store, record.folder, record.run) for record in records if record.run]
    own_validations = chain.from_iterable(store.concurrently(finished))
    write_table(store, "own_validations", run_group, (candidate.to_row() for candidate in own_validations))
    write_aggregates(store, run_group)
    return any(record.grades for record in records)


def write_aggregates(
    store: Store,
    run_group: str,
    incomplete: Incomplete = "available",
    split: str | None = None,
) -> None:
    """Write tables/aggregates/... of a group from its other tables; arguments as in `write_report`."""
    from grading.statistics.aggregate import rates_of
    from grading.statistics.attempts import best_of, competition_table, pass_at
    from grading.statistics.over_time import over_time
    from grading.statistics.usage import usage_by_run, usage_by_series

    grades, runs, usage, snapshots, _ = _read(store, [run_group])
    if grades.empty:
        return
    import pandas as pd

    counting = replace(counting_of(store, grades, runs, split), incomplete=incomplete)
    rates = {by: rates_of(grades, runs, counting, by) for by in _GROUPINGS}
    tables: dict[Table, pd.DataFrame] = {
        name: pd.concat([getattr(of_kind, part).assign(by=by) for by, of_kind in rates.items()], ignore_index=True)
        for name, part in _RATES_PARTS.items()
    }
    settings = {"incomplete": incomplete, "counted": split or "what was run"}
    tables["aggregates/rates"] = tables["aggregates/rates"].assign(**settings)
    tables["aggregates/pass_at_k"] = pass_at(grades, runs, counting)
    tables["aggregates/best_of_k"] = best_of(grades, runs, counting)
    tables["aggregates/competitions"] = competition_table(grades, leaderboards_of(grades, runs), counting, runs)
    tables["aggregates/over_time"] = over_time(grades, snapshots, runs, counting)
    counted_grades, counted_usage = (counting.chosen(table) for table in (grades, usage))
    tables["aggregates/usage_by_run"] = usage_by_run(counted_usage)
    tables["aggregates/usage"] = usage_by_series(counted_grades, counted_usage, counting.chosen(runs))
    for name, table in tables.items():
        if name in _RATES_PARTS and "seed" in table:  # a run without a seed is identified by its name
            seeds = table["seed"].astype(object)
            named = seeds.map(lambda seed: isinstance(seed, str)).astype(bool)
            table = table.assign(seed=seeds.mask(named), run_id=seeds.where(named))
        write_frame(store, name, run_group, table)


_GROUPINGS: tuple[Any, ...] = ("complexity", "category")
_RATES_PARTS: dict[Table, str] = {
    "aggregates/rates": "rates",
    "aggregates/by_seed": "by_seed",
    "aggregates/gaps": "gaps",
}


def write_report(
    store: Store,
    run_groups: list[str],
    *,
    incomplete: Incomplete = "available",
    split: str | None = None,
    cutoffs: Mapping[str, str] | None = None,
    out: Path | None = None,
) -> str:
    """Write summary.json, report.html and report.md of run groups from their tables; returns the URL of report.html.

    With `out`, they are written into that directory instead of the store, and the path of report.html is returned.

    With `split`, all its competitions count, also those without a run; by default, those that each group ran.
    `incomplete` has the same meaning as in `grading.statistics.aggregate.aggregate`. `cutoffs` has the month of the
    newest training data by agent, instead of what the runs state.
    """
    from grading.page import Results, render_markdown, render_page
    from grading.page.integrity import TABLES

    grades, runs, usage, snapshots, public_scores = _read(store, run_groups)
    folder = store.url("reports", report_name(run_groups))
    facts = _facts(grades, runs)
    counting = replace(counting_of(store, grades, runs, split), incomplete=incomplete)
    root = "../.." if out is None else store.root
    links = report_links(store, runs, root)
    title = f"MLE-bench: {' and '.join(run_groups)}"
    trained = {"Agents trained with test scores": text} if (text := marked(store)) else {}
    results = Results(
        grades,
        runs,
        snapshots,
        usage,
        own=read_table(store, "own_validations", run_groups),
        public_scores=public_scores if len(public_scores) else None,
        validations=read_table(store, "validations", run_groups),
        noise=read_table(store, "split_noise", run_groups),
        examined={name: read_table(store, name, run_groups) for name in TABLES},
        titles={name: competition.name for name, competition in facts.items()},
        thresholds={name: _thresholds(competition, grades) for name, competition in facts.items()},
        percentiles=_percentiles(facts),
        conditions={group: report_conditions(runs, grades, group) | trained for group in run_groups},
        root=root,
        trajectories=links["trajectories"],
        logs=links["logs"],
        leaks={
            (edition, name): _leaks(competition, edition) for name, competition in facts.items() for edition in EDITIONS
        },
        ended={name: competition.ended for name, competition in facts.items()},
        stated_cutoffs=cutoffs or {},
        comparability={
            ("v2", name): (competition.v2_comparable.verdict, competition.v2_comparable.reason)
            for name, competition in facts.items()
            if competition.v2_comparable
        },
        split_sizes=split_sizes(split),
        notes=[*split_notes(runs, registry.own_splits(), split), *mark_notes(runs)],
        unavailable={
            name: (listed, str(registry.get(name).facts.availability))
            for listed in split_sizes(split)
            for name in registry.list(listed)
            if registry.get(name).facts.availability
        },
        **vars(counting),
    )
    files = {"report.html": render_page(results, title), "report.md": render_markdown(results, title)}
    files |= _summaries(grades)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (out / name).write_text(content, "utf-8")
        return str(out / "report.html")
    for name, content in files.items():
        store.write(f"{folder}/{name}", content.encode())
    return f"{folder}/report.html"


def split_sizes(own_split: str | None = None) -> dict[str, int]:
    """The number of competitions by complexity split, and that of `own_split` if it is one of one's own."""
    own = [name for name in registry.own_splits() if name == own_split]
    return {split: len(registry.list(split)) for split in (*_SPLITS, *own)}


def report_name(run_groups: list[str]) -> str:
    """The name of the folder of a report. File systems have room for 255 bytes, which many groups exceed together."""
    name = "+".join(run_groups)
    if len(name) <= _MAX_NAME_LENGTH:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{run_groups[0][: _MAX_NAME_LENGTH // 2]}+{len(run_groups) - 1}-others-{digest}"


def _summaries(grades: pd.DataFrame) -> dict[str, str]:
    """The content of summary.json for one edition, v1 if there is one, and summary-<edition>.json for each other one.

    Scores of different editions are not comparable, so they are never added up.
    """
    from grading.statistics.series import latest_grades

    newest = latest_grades(grades)
    editions = sorted(set(newest["edition"]))
    return {
        "summary.json" if edition == editions[0] else f"summary-{edition}.json": summarise(
            reports_of(newest[newest["edition"] == edition])
        ).to_json()
        for edition in editions
    }


def counting_of(store: Store, grades: pd.DataFrame, runs: pd.DataFrame, split: str | None = None) -> Counting:
    """How the runs of the tables are counted: which competitions, and what their groups planned.

    Runs that were all made for one split of one's own have its rates, instead of those of their complexities.

    Raises `UserError` for an unknown split.
    """
    from grading.statistics.counting import Counting
    from storage.runs.evidence.group_manifest import planned_runs

    groups = sorted({group for table in (grades, runs) if len(table) for group in table["run_group"]})
    planned = {group: planned_runs(store, group) for group in groups}
    facts_by_id = _facts(grades, runs, also=[name for plan in planned.values() for name, _ in plan])
    expected = None
    if split is not None:
        facts_by_id |= {name: registry.get(name).facts for name in registry.list(split)}
        own = split in registry.own_splits()  # its rates are those of the split, and not of its complexities
        expected = {name: split if own else facts_by_id[name].complexity for name in registry.list(split)}
    elif (own_split := split_of(runs)) is not None:
        expected = dict.fromkeys(facts_by_id, own_split)
    facts = {
        name: {"complexity": competition.complexity, "category": competition.category}
        for name, competition in facts_by_id.items()
    }
    return Counting(expected, facts, planned=planned)


_DEFAULTS: dict[str, Any] = {
    "submission_path": "",
    **dict.fromkeys(("gold_threshold", "silver_threshold", "bronze_threshold", "median_threshold"), math.nan),
    **dict.fromkeys(
        (name for name, field in CompetitionReport.model_fields.items() if field.annotation is bool), False
    ),
}


def reports_of(grades: pd.DataFrame) -> list[CompetitionReport]:
    """Rows of tables/grades as reports in the published format, in the same order.

    Values that are missing, because they were invalid in a file, become NaN, an empty path, or false. Rows without a
    competition or a time of grading are left out.
    """
    import pandas as pd

    if len(grades):
        grades = grades[grades["competition_id"].notna() & grades["created_at"].notna()]
    names = [name for name in CompetitionReport.model_fields if name in grades]
    records = grades[names].to_dict("records") if len(grades) else []
    reports = [{k: None if pd.isna(v) else v for k, v in record.items()} for record in records]
    for report in reports:
        report |= {name: value for name, value in _DEFAULTS.items() if report.get(name) is None}
        if report["valid_submission"] and report["score"] is None:
            report["score"] = math.nan  # tables have no NaN
    return [
        CompetitionReport.model_validate({**report, "leaderboard": report.get("leaderboard") or STORED})
        for report in reports
    ]


def _read(store: Store, run_groups: list[str]) -> tuple[pd.DataFrame, ...]:
    """The tables grades, runs and usage; the snapshots, and the files with a public score, which are no snapshots."""
    names: tuple[Table, ...] = ("grades", "runs", "usage", "snapshots")
    grades, runs, usage, graded = (read_table(store, name, run_groups) for name in names)
    if graded.empty:  # without rows there are no columns
        return grades, runs, usage, graded, graded
    asked = graded["submission"].notna()
    return grades, runs, usage, graded[~asked], graded[asked]


def _leaks(facts: CompetitionFacts, edition: Edition) -> list[str]:
    """The known issues by which the edition gives answers away."""
    from grading.page.results import ON_THE_WEB

    return [f"{issue.id}{ON_THE_WEB if issue.needs else ''}" for issue in facts.leaks(edition)]


def _facts(*tables: pd.DataFrame, also: Sequence[str] = ()) -> dict[str, CompetitionFacts]:
    """The facts of the competitions in the tables, and of `also`.

    Unknown ones, which imported reports may contain, and those with a mistake in their folder are left out.
    """
    facts = {}
    for name in sorted({*also, *(name for table in tables if len(table) for name in table["competition_id"])}):
        try:
            facts[name] = registry.get(name).facts
        except (UnknownCompetition, BadCompetition):
            continue
    return facts


def _thresholds(facts: CompetitionFacts, grades: pd.DataFrame) -> Thresholds:
    """The thresholds to draw: those of a fetched leaderboard if all grades used it, otherwise the stored ones."""
    import pandas as pd

    stored = Thresholds.of(facts)
    competition_grades = grades[grades["competition_id"] == facts.id]
    if "leaderboard" not in competition_grades or competition_grades["leaderboard"].nunique(dropna=False) != 1:
        return stored
    row = competition_grades.iloc[0]
    if pd.isna(row["leaderboard"]) or row["leaderboard"] == STORED:
        return stored
    gold, silver, bronze, median = (float(row[f"{name}_threshold"]) for name in ("gold", "silver", "bronze", "median"))
    # Grades do not record the number of teams.
    return replace(
        stored, gold=gold, silver=silver, bronze=bronze, median=median, teams=0, leaderboard=row["leaderboard"]
    )


def leaderboards_of(*tables: pd.DataFrame) -> dict[str, Any]:
    """21 scores of the leaderboard of each competition in the tables, from best to worst, where it is known."""
    return _percentiles(_facts(*tables))


def _percentiles(facts: dict[str, CompetitionFacts]) -> dict[str, Any]:
    return {
        name: competition.leaderboard.percentiles
        for name, competition in facts.items()
        if competition.leaderboard.percentiles
    }
