"""mlebench import-report."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from pydantic import ValidationError

from common.errors import UsageError, UserError, explained
from common.names import is_text
from common.plain_json import read_json
from common.units import counted
from competitions import registry
from competitions.editions import EDITIONS
from competitions.errors import UnknownCompetition
from competitions.facts import ID_PATTERN
from flows.commands.answers import answer, say, takes_json
from flows.commands.options import StoreOptions, takes

if TYPE_CHECKING:
    from grading.report import CompetitionReport

_MAX_ID_LENGTH = 100
_FIRST_AND_LAST_YEAR = (1970, 2200)  # tables count nanoseconds in 64 bits


@click.command("import-report")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--group", "run_group", required=True, metavar="NAME", help="Name of the run group to create.")
@click.option("--agent", default=None, help="Name of the agent that made the submissions. Default: the group's name.")
@click.option(
    "--edition",
    type=click.Choice(EDITIONS),
    default="v1",
    show_default=True,
    help="Edition that they were graded with.",
)
@click.option(
    "--seeds",
    type=click.Choice(["file", "compact"]),
    default="file",
    show_default=True,
    help="file: a file is a seed, and what it lacks is a gap. compact: the n-th report of a competition is seed n.",
)
@takes(storage=StoreOptions)
@takes_json
def command(
    files: tuple[Path, ...],
    run_group: str,
    agent: str | None,
    edition: str,
    seeds: str,
    storage: StoreOptions,
) -> None:
    """Import published grading reports FILES as run group NAME, to compare them with other run groups.

    Each file becomes a seed: 0, 1, ... in the given order. A competition that occurs several times in a file becomes
    several seeds. With --seeds compact, the reports of a competition are numbered in the order of the files, so that a
    file that lacks a competition leaves no gap.
    """
    from grading.report import GradedSubmission
    from storage.runs.folders import RunFolder, group_exists
    from storage.runs.records import GradeRecord
    from storage.store import check_run_group
    from tasks.report import write_report, write_tables

    if agent is not None and not agent.strip():
        raise UsageError("--agent: an agent needs a name")
    reports = [(path, _read(path)) for path in files]
    store = storage.open_usable(new=True)
    if group_exists(store, check_run_group(run_group)):
        raise UserError(f"group {run_group!r} exists already; choose another name")
    next_seed: Counter[str] = Counter()
    for number, (path, competition_reports) in enumerate(reports):
        for report in competition_reports:
            name = report.competition_id
            # A file that leaves a competition out must not shift the seeds of the files that follow.
            seed = next_seed[name] if seeds == "compact" else max(number, next_seed[name])
            next_seed[name] = seed + 1
            complexity, category = _facts(name)
            graded = GradedSubmission(
                report=report,
                outcome="valid" if report.valid_submission else "invalid" if report.submission_exists else "missing",
                message=None if report.valid_submission else "the imported report does not say why",
                run_group=run_group,
                run_id=_run_id(report, f"{path.stem}-{name}-{seed}"),
                seed=seed,
                agent=agent or run_group,
                edition=edition,
                complexity=complexity,
                category=category,
            )
            record = GradeRecord(**graded.to_row(), key=f"imported from {path.name}")
            RunFolder(store, run_group, name, seed).write_grade(record)
    write_tables(store, run_group)
    write_report(store, [run_group])
    count = max(next_seed.values(), default=0)
    total = sum(len(competition_reports) for _, competition_reports in reports)
    say(f"{run_group}: {counted(total, 'report')} as {counted(count, 'seed')}")
    answer({"run_group": run_group, "reports": total, "seeds": count})


def _read(path: Path) -> list[CompetitionReport]:
    """The competition reports of a published file, in which Python may have written NaN."""
    from grading.report import CompetitionReport

    field_names = set(CompetitionReport.model_fields)
    try:
        items: list[dict[str, Any]] = read_json(path)["competition_reports"]
        reports = [
            CompetitionReport.model_validate({k: v for k, v in item.items() if k in field_names}) for item in items
        ]
    except ValidationError as error:
        raise UserError(f"{path} is not a grading report: {explained(error)}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is not a grading report: it has no competition_reports") from error
    if not reports:
        raise UserError(f"{path} has no competition_reports to import")
    for report in reports:
        if wrong := _wrong(report):
            raise UserError(f"{path} is not a grading report: {wrong}")
    return reports


def _wrong(report: CompetitionReport) -> str | None:
    """Why a well-formed report cannot be stored or compared; None if it can."""
    name = report.competition_id
    if len(name) > _MAX_ID_LENGTH or not re.fullmatch(ID_PATTERN, name):
        return f"{name[:_MAX_ID_LENGTH]!r} is not the id of a competition"
    limits = {part: getattr(report, f"{part}_threshold") for part in ("gold", "silver", "bronze", "median")}
    if wrong := [part for part, limit in limits.items() if not math.isfinite(limit)]:
        return f"{name} has no finite {wrong[0]}_threshold"
    if not is_text(report.submission_path or ""):
        return f"the submission_path of {name} is no text"  # half of a surrogate pair, which other programs cannot read
    if not _FIRST_AND_LAST_YEAR[0] <= report.created_at.year <= _FIRST_AND_LAST_YEAR[1]:
        return f"{name} was created in the year {report.created_at.year}"
    return None


def _run_id(report: CompetitionReport, default: str) -> str:
    """The name of the published run, `<competition>_<something>`, if it is part of the submission's path."""
    parts = Path(report.submission_path or "").parts
    return next((part for part in parts if part.startswith(f"{report.competition_id}_")), default)


def _facts(competition_id: str) -> tuple[str, str]:
    try:
        facts = registry.get(competition_id).facts
    except UnknownCompetition:
        return "unknown", ""
    return facts.complexity, facts.category
