"""mlebench export."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import click

from common.errors import UserError
from common.units import counted
from competitions.editions import EDITIONS, Edition
from flows.commands.answers import answer, takes_json
from flows.commands.export_leaderboard import Disclosure, write_leaderboard
from flows.commands.export_submissions import SubmissionOptions, write_submissions
from flows.commands.options import GroupedCommand, Selection, StoreOptions, option, takes
from flows.commands.types import RUN_GROUP

if TYPE_CHECKING:
    from storage.store import Store


@dataclass(frozen=True)
class OutputOptions:
    """What is exported, and where it goes."""

    TITLE: ClassVar[str] = "Export"
    format: Annotated[
        str,
        option(
            "--format",
            type=click.Choice(
                ["report", "leaderboard", "submissions", "inspect", "mlflow", "atif", "every-eval-ever", "harbor"]
            ),
            metavar="FORMAT",  # all of them together are wider than a terminal
            show_default=True,
            help="report: the published grading report. leaderboard: a submission to the public leaderboard, as text. "
            "submissions: a JSONL file for `mlebench grade`. inspect: logs for `inspect view`. mlflow: a file store "
            "for `mlflow ui`. atif: trajectories. every-eval-ever: results in the schema of that collection. harbor: "
            "competitions as tasks.",
        ),
    ] = "report"
    output_dir: Annotated[
        Path,
        option(
            "--output-dir",
            type=click.Path(file_okay=False, path_type=Path),
            help="Directory for the files. Default: the current one.",
        ),
    ] = Path()
    by_seed: Annotated[
        bool,
        option("--by-seed", is_flag=True, help="Write one report for each seed, as the public leaderboard requires."),
    ] = False
    edition: Annotated[
        Edition | None,
        option(
            "--edition", type=click.Choice(EDITIONS), help="Edition to export. Default: that of the group, of tasks v1."
        ),
    ] = None


@dataclass(frozen=True)
class Task:
    """How tasks of Harbor are written."""

    TITLE: ClassVar[str] = "Tasks of Harbor"
    data: Annotated[
        str,
        option(
            "--data",
            type=click.Choice(["mount", "copy"]),
            show_default=True,
            help="mount: containers mount the data of the store. copy: they are fetched from the store into the task, "
            "for sandboxes without volumes.",
        ),
    ] = "mount"
    oracle: Annotated[
        bool,
        option(
            "--oracle",
            is_flag=True,
            help="Put the right answers into solution/, for Harbor's oracle agent. Keep such a task to yourself.",
        ),
    ] = False
    agent_image: Annotated[
        str, option("--agent-image", show_default=True, help="Image that the agent's container is built on.")
    ] = "mlebench-base"
    verifier_image: Annotated[
        str,
        option("--verifier-image", show_default=True, help="Image of mlebench that the verifier's is built on."),
    ] = "mlebench"


@click.command("export", cls=GroupedCommand)
@click.argument("run_group", type=RUN_GROUP, required=False)
@takes(
    output=OutputOptions,
    submissions=SubmissionOptions,
    selection=Selection,
    disclosure=Disclosure,
    task=Task,
    storage=StoreOptions,
)
@takes_json
def command(
    run_group: str | None,
    output: OutputOptions,
    submissions: SubmissionOptions,
    selection: Selection,
    disclosure: Disclosure,
    task: Task,
    storage: StoreOptions,
) -> None:
    """Write the results of RUN_GROUP, or competitions as tasks, for other tools.

    By default this is the grading report of RUN_GROUP in the published format, `<time>_grading_report.json`. Runs whose
    grading failed are left out of it, with a warning. `--format harbor` takes competitions instead of a run group.
    """
    tasks = output.format == "harbor"
    if output.by_seed and output.format != "report":
        raise click.UsageError("--by-seed is for reports only")
    if output.format != "leaderboard" and disclosure.facts:
        raise click.UsageError("--fact is for --format leaderboard only")
    if output.format != "submissions" and submissions != SubmissionOptions():
        raise click.UsageError(
            "--output, --copy-to and --metadata are for --format submissions; --output-dir names the directory of the "
            "other output"
        )
    from_file = submissions.metadata is not None and output.format == "submissions"
    if (tasks or from_file) == bool(run_group) or tasks != bool(selection):
        expected = (
            "competitions (-c ID, --split NAME, ...) and no RUN_GROUP" if tasks else "a RUN_GROUP and no competitions"
        )
        raise click.UsageError(f"--format {output.format} takes {expected}")
    store = storage.open(new=from_file)
    output.output_dir.mkdir(parents=True, exist_ok=True)
    if output.format == "submissions":
        path = output.output_dir / submissions.output
        write_submissions(store, run_group, replace(submissions, output=path))
    elif tasks:
        _write_tasks(store, selection.ids(), output, task)
    elif output.format == "report":
        _write_reports(store, str(run_group), output)
    elif output.format == "leaderboard":
        for path in write_leaderboard(store, str(run_group), output.edition, output.output_dir, disclosure):
            _written(path)
    else:
        for path in _FORMATS[output.format](store, str(run_group), output):
            _written(path)
    if run_group and output.format in _WITHOUT_CONDITIONS:
        _tell_conditions(store, run_group)


def _tell_conditions(store: Store, run_group: str) -> None:
    """Name the conditions that are on, for a format that has no place for them."""
    from storage.runs.folders import folders, read_runs
    from tasks.wiring.requests import switched_on

    runs = read_runs(store, folders(store, run_group), skip_invalid=True)
    if conditions := switched_on([run.record for run in runs]):
        told = ", ".join(conditions.values())
        click.echo(f"mlebench: conditions of these runs, to be stated with their results: {told}", err=True)


def _written(path: Path) -> None:
    """Print the path of a file or folder that was written."""
    if not answer({"path": path}):
        click.echo(str(path))


def _write_tasks(store: Store, competition_ids: list[str], output: OutputOptions, task: Task) -> None:
    from tasks.export.harbor import HarborOptions, write_task

    options = HarborOptions(**vars(task))
    for name in competition_ids:
        _written(write_task(store, name, output.edition or "v1", output.output_dir, options))


def _inspect(store: Store, run_group: str, output: OutputOptions) -> Iterator[Path]:
    from tasks.export.gathered import gather
    from tasks.export.inspect_log import write_log

    for series in gather(store, run_group, output.edition):
        yield write_log(series, output.output_dir)


def _atif(store: Store, run_group: str, output: OutputOptions) -> Iterator[Path]:
    from tasks.export.gathered import gather
    from tasks.export.trajectories import write_trajectories

    for series in gather(store, run_group, output.edition):
        yield from write_trajectories(series, output.output_dir)


def _every_eval_ever(store: Store, run_group: str, output: OutputOptions) -> Iterator[Path]:
    from tasks.export.every_eval_ever import write_results
    from tasks.export.gathered import gather

    for series in gather(store, run_group, output.edition):
        yield write_results(store, series, output.output_dir)


def _mlflow(store: Store, run_group: str, output: OutputOptions) -> Iterator[Path]:
    from tasks.export.gathered import gather
    from tasks.export.mlflow_store import write_runs

    for series in gather(store, run_group, output.edition):
        yield write_runs(series, output.output_dir)


_FORMATS = {"inspect": _inspect, "mlflow": _mlflow, "atif": _atif, "every-eval-ever": _every_eval_ever}
_WITHOUT_CONDITIONS = ("report", "submissions", "atif")
"""Formats that have no place for the conditions of the runs."""


def _write_reports(store: Store, run_group: str, output: OutputOptions) -> None:
    from grading.statistics.series import latest_grades
    from storage.runs.folders import no_runs
    from storage.tables import read_table
    from tasks.export.gathered import edition_of
    from tasks.export.grading_reports import write_reports

    grades = read_table(store, "grades", [run_group])
    if not len(grades):
        raise no_runs(store, run_group, "graded runs")
    grades = latest_grades(grades)
    edition = edition_of(run_group, sorted(set(grades["edition"])), output.edition)
    grades = grades[grades["edition"] == edition]
    failed = int((grades["outcome"] == "failed").sum())
    if failed == len(grades):
        raise UserError(f"nothing of group {run_group!r} was graded as {edition}")
    for path in write_reports(grades, output.output_dir, output.by_seed):
        _written(path)
    if failed:
        click.echo(f"mlebench: left out, because grading failed: {counted(failed, 'run')}", err=True)
