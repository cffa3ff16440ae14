"""A submission to the public leaderboard in Markdown: the row, what its maintainers ask for, and the competitions.

The columns are those of the leaderboard of February 2026, the newest with a column for leakage. Since then its
maintainers also ask whether the scaffold shows the agent anything that is derived from the test set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from common.markdown import Markdown, code, escape, table
from common.units import counted
from competitions import registry
from competitions.editions import Edition
from grading.conditions import deviations
from grading.statistics.experiment import benchmark_splits, experiment, ungraded
from grading.statistics.series import BENCHMARK_SPLITS, latest_grades
from storage.store import Store
from storage.tables import read_table
from tasks.export.facts import Fact, facts_of
from tasks.export.gathered import Series, file_name
from tasks.export.grading_reports import write_reports

HEADER = [
    "Agent",
    "LLM(s) used",
    "Low == Lite (%)",
    "Medium (%)",
    "High (%)",
    "All (%)",
    "Running Time (hours)",
    "Date",
]
HEADER += ["Known Leakage", "Source Code Available", "Grading Reports Available"]
ASK, YES, NO, NOTHING = "ASK", "✓", "X", Markdown("-")
_SPLITS = (*BENCHMARK_SPLITS, "all")
_MEDALS = ("gold_medal", "silver_medal", "bronze_medal", "any_medal", "above_median", "valid_submission")
_PADDED = Markdown("[^padded]")


@dataclass(frozen=True)
class Submission:
    """The text of a submission, and the facts that the store does not know and that were not stated."""

    text: str
    missing: list[Fact]


def write_submission(
    store: Store, series: Series, stated: Mapping[str, str], folder: Path
) -> tuple[tuple[Path, Path], list[Fact]]:
    """Write the submission of a series into a folder: its text, and below it the grading report of each seed.

    Returns the paths of the text and of the folder of reports, and the facts that are missing.
    """
    submission = submission_of(store, series, stated)
    path, reports = folder / f"{file_name(*series.name)}.leaderboard.md", folder / file_name(*series.name)
    reports.mkdir(exist_ok=True)
    for old in reports.glob("*_grading_report.json"):
        old.unlink()
    list(write_reports(_grades(store, series), reports, by_seed=True))
    path.write_text(submission.text, "utf-8")
    return (path, reports), submission.missing


def _grades(store: Store, series: Series) -> pd.DataFrame:
    grades = latest_grades(read_table(store, "grades", [series.run_group]))
    return grades[(grades["agent"] == series.agent) & (grades["edition"] == series.edition)]


def submission_of(store: Store, series: Series, stated: Mapping[str, str]) -> Submission:
    """The submission of a series; `stated` has what the submitter says, by the names in `tasks.export.facts`."""
    grades = _grades(store, series)
    runs = read_table(store, "runs", [series.run_group])
    runs = runs[runs["agent"] == series.agent] if len(runs) else runs
    facts = facts_of(store, series, stated)
    missing = [fact for fact in facts.values() if not fact.known]
    listed = {split: registry.list(split) for split in BENCHMARK_SPLITS}
    splits = benchmark_splits(listed, list(grades["competition_id"]))
    figures = experiment(grades, [series.run_group], splits)["splits"]
    counting = {name for names in splits.values() for name in names}
    leaks = _leaks(counting | set(grades["competition_id"]), series.edition)
    taken_out = sorted(counting & set(leaks))
    sound = {split: [name for name in names if name not in leaks] for split, names in splits.items()}
    without = experiment(grades, [series.run_group], sound)["splits"]
    seeds = min(filter(None, (each["num_seeds"] for each in figures.values())), default=grades["seed"].nunique())
    padded = ungraded(figures)
    away = deviations(runs, seeds, series.edition)
    lines = [f"# {escape(series.agent)}: submission to the leaderboard of MLE-bench", "", "## Row", ""]
    lines += table(list(map(Markdown, HEADER)), [_row(series, facts, figures)])
    if padded:
        lines += ["", f"{_PADDED}: {counted(padded, 'run')} without a grade, counted as failures."]
    lines += ["", "## Disclosure", ""]
    shown = [
        [fact.label, fact.recorded or f"not known: {fact.record.missing}", fact.stated or "–"]
        for fact in facts.values()
    ]
    lines += table(["What", "From the records", "Stated by the submitter"], shown)
    box = "x" if facts["feedback"].answer is False else " "
    lines += ["", f"- [{box}] The scaffold shows the agent nothing that is derived from the test set."]
    lines += ["", "Deviations from the published conditions:", ""]
    lines += [f"- {escape(each)}" for each in away] or ["- none"]
    if missing:
        lines += ["", "## To be stated", "", *(f"- {escape(fact.question)}" for fact in missing)]
    lines += ["", "## With and without known leaks", "", "Any medal in %, mean ± standard error over seeds.", ""]
    number = f"without {counted(len(taken_out), 'competition')} with known leaks"
    rows = [[name, *_rates(part)] for name, part in (("all competitions", figures), (number, without))]
    lines += table(["Competitions", *map(Markdown, HEADER[2:6])], rows)
    lines += ["", escape(f"Known leaks: {', '.join(taken_out) or 'none'}.")]
    lines += ["", "## Competitions", "", *_competitions(grades, leaks)]
    lines += ["", f"Grading reports, one for each seed, are in the folder {code(file_name(*series.name))}.", ""]
    return Submission("\n".join(lines), missing)


def _row(series: Series, facts: Mapping[str, Fact], figures: Mapping[str, Any]) -> list[str]:
    ended = [result.run.finished_at for result in series.results if result.run and result.run.finished_at]
    models, hours, leakage, source = (facts[name] for name in ("models", "hours", "leakage", "source-code"))
    return [
        series.agent,
        models.stated or models.recorded or ASK,
        *_rates(figures),
        hours.recorded or hours.stated or ASK,
        f"{max(ended):%Y-%m-%d}" if ended else ASK,
        {None: ASK, False: NOTHING, True: YES}[leakage.answer],
        {None: ASK, False: NO, True: YES}[source.answer],
        YES,
    ]


def _rates(figures: Mapping[str, Any]) -> list[Markdown]:
    """Mean ± standard error of the splits; a dash for one of which nothing was tried."""
    return [_rate(figures[split]) if split in figures else NOTHING for split in _SPLITS]


def _rate(split: Mapping[str, Any]) -> Markdown:
    rate = split["any_medal"]
    if rate["mean"] is None:
        return NOTHING
    error = "" if rate["sem"] is None else f" ± {rate['sem']:.2f}"
    mark = _PADDED if split["padded"] or split["failed"] else ""
    return Markdown("{:.2f}{}{}").format(rate["mean"], Markdown(error), mark)


def _leaks(competition_ids: Iterable[str], edition: Edition) -> dict[str, list[str]]:
    """The open issues of the edition whose data give answers away, by competition, whether it was attempted or not."""
    known = set(registry.list())
    found: dict[str, list[str]] = {}
    for name in known.intersection(competition_ids):
        issues = registry.get(name).facts.leaks(edition)
        if names := [issue.id for issue in issues if issue.needs is None]:
            found[name] = names
    return found


def _competitions(grades: pd.DataFrame, leaks: Mapping[str, Sequence[str]]) -> Iterable[str]:
    """A row for each competition: its attempts, how many of them had each outcome, and its known leaks."""
    rows = []
    for (split, name), part in grades.groupby(["complexity", "competition_id"], sort=True):
        scores = part.loc[part["valid_submission"], "score"].dropna()
        mean = f"{scores.mean():.5g}" if len(scores) else NOTHING
        counts = [str(int(part[outcome].sum())) for outcome in _MEDALS]
        rows.append(
            [str(name), str(split), str(len(part)), mean, *counts, ", ".join(leaks.get(str(name), ())) or NOTHING]
        )
    labels = [outcome.replace("_", " ").capitalize() for outcome in _MEDALS]
    return table(["Competition", "Split", "Attempts", "Mean score", *labels, "Known leaks"], rows)
