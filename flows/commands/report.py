"""mlebench report."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from common import months, plain_json
from common.errors import UsageError, UserError
from flows.commands.answers import json_option, wanted
from flows.commands.options import StoreOptions, takes
from flows.commands.types import RUN_GROUP, one_agent, whole

if TYPE_CHECKING:
    from storage.store import Store


@click.command("report")
@click.argument("run_groups", type=RUN_GROUP, nargs=-1, required=True)
@click.option(
    "--incomplete",
    type=click.Choice(["available", "exclude", "fail"]),
    default="available",
    show_default=True,
    help="What is ungraded: count the available runs of each competition, exclude seeds with ungraded runs from the "
    "split, or count ungraded runs as failures.",
)
@click.option(
    "--split",
    metavar="NAME",
    help="Count all competitions of this split, also those that were never run. Default: those that each group ran.",
)
@click.option(
    "--num-seeds",
    type=whole(1),
    metavar="N",
    help="With --json: number of seeds. Missing ones count as failures, further ones not at all. Default: in each "
    "split, the most attempts at a competition.",
)
@click.option(
    "--experiment-id",
    metavar="NAME",
    help="With --json: the groups are one experiment of this name. Default: each group is one.",
)
@click.option(
    "--cutoff",
    "cutoffs",
    multiple=True,
    metavar="AGENT=YYYY-MM",
    help="Month of the newest training data of the model of an agent, for agents whose agent.yaml did not state "
    "`knowledge_cutoff`; repeatable.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write the report into this directory, and nothing into the store, which may be one that you can only read.",
)
@takes(storage=StoreOptions)
@json_option("Print the rates as JSON: one array, with an object per experiment. Writes no report.")
def command(
    run_groups: tuple[str, ...],
    incomplete: Any,
    cutoffs: tuple[str, ...],
    out: Path | None,
    storage: StoreOptions,
    **published: Any,
) -> None:
    """Write the report of one or several RUN_GROUPS, side by side, from the tables in the store.

    Writes report.html and report.md, and the aggregates to tables/aggregates. Prints the path of the page.

    With --json, it writes no report, and prints the rates of each split in the published way, in percent and with all
    competitions of the split: mean and standard error over seeds. The n-th attempt at a competition is its seed n, and
    what a seed lacks counts as a failure, as in the published results.
    """
    from storage.runs.folders import no_runs
    from storage.tables import read_table
    from storage.writers import StoreError
    from tasks.report import write_aggregates, write_report

    cutoff_months, split = dict(map(_cutoff, cutoffs)), published["split"]
    store = storage.open()
    groups = list(dict.fromkeys(run_groups))
    for group in groups:
        if not len(read_table(store, "grades", [group])):
            raise no_runs(store, group, "graded runs")
    if wanted():
        click.echo(_as_json(store, groups, split, published["num_seeds"], published["experiment_id"]))
        return
    if published["num_seeds"] or published["experiment_id"]:
        raise UsageError("--num-seeds and --experiment-id need --json")
    counted = {"incomplete": incomplete, "split": split}
    if out is not None:
        click.echo(write_report(store, groups, **counted, cutoffs=cutoff_months, out=out))
        return
    try:
        store.require_usable()
    except StoreError as error:
        raise UserError(f"{error}; or write the report elsewhere with --out DIR") from error
    for group in groups:
        write_aggregates(store, group, **counted)
    click.echo(store.shown(write_report(store, groups, **counted, cutoffs=cutoff_months)))


def _cutoff(text: str) -> tuple[str, str]:
    """The agent and the month of one `--cutoff`. Raises `UsageError` if it has another form."""
    agent, _, month = text.rpartition("=")
    if not agent or not re.fullmatch(months.PATTERN, month):
        raise UsageError(f"--cutoff {text!r} is not of the form AGENT=YYYY-MM, such as aide=2023-10")
    return agent, month


def _as_json(store: Store, groups: list[str], split: str | None, num_seeds: int | None, name: str | None) -> str:
    """The experiments as a JSON list: one of all groups with `name`, else one for each group."""
    from competitions import registry
    from grading.statistics.experiment import benchmark_splits, experiment
    from storage.tables import read_table

    ids_by_split = {
        split_name: registry.list(split_name)
        for split_name in ([split] if split else ["low", "medium", "high", "dev", "demo"])
    }
    experiments = []
    for label, experiment_groups in [(name, groups)] if name else [(group, [group]) for group in groups]:
        grades = read_table(store, "grades", experiment_groups)
        for group, group_grades in grades.groupby("run_group"):
            one_agent(str(group), group_grades)
        splits = ids_by_split if split else benchmark_splits(ids_by_split, list(grades["competition_id"]))
        try:
            experiments.append({"experiment_id": label, **experiment(grades, experiment_groups, splits, num_seeds)})
        except ValueError as error:
            raise UserError(f"{label}: {error}") from error
    return plain_json.dumps(experiments, indent=2)
