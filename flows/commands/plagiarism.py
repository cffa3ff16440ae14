"""mlebench plagiarism."""

from __future__ import annotations

from pathlib import Path

import click

from common.errors import UserError
from common.units import counted
from flows.commands.answers import answer, say, takes_json
from flows.commands.external import read_external, write_csv
from flows.commands.options import RUN_GROUP, StoreOptions, takes
from flows.commands.refresh import refresh_report


@click.command("plagiarism")
@click.argument("run_group", type=RUN_GROUP, required=False)
@click.option(
    "--submission",
    type=click.Path(path_type=Path),
    help="Instead of a run group: JSONL file of another system's results, with competition_id, submission_path and "
    "code_path on each line. They are compared with notebooks only.",
)
@click.option(
    "--output-dir", type=click.Path(file_okay=False, path_type=Path), help="Also write plagiarism.csv into this folder."
)
@click.option(
    "--against",
    multiple=True,
    metavar="GROUP",
    help="Compare with the runs of this group, besides notebooks; repeatable. Default: all others.",
)
@takes(storage=StoreOptions)
@takes_json
def command(
    run_group: str | None,
    submission: Path | None,
    output_dir: Path | None,
    against: tuple[str, ...],
    storage: StoreOptions,
) -> None:
    """Compare the code of RUN_GROUP with public notebooks (`mlebench kernels`) and with other agents' runs.

    Prints pairs that are 60 % similar or more, which the report shows side by side. All pairs are written to
    tables/plagiarism.
    """
    from common.cleaning import clean
    from competitions import registry
    from storage.runs.folders import runs_of
    from storage.schemas import TABLES
    from storage.sources.kaggle.kernels import read_index
    from tasks.plagiarism import find_plagiarism

    if (run_group is None) == (submission is None):
        raise UserError("name a run group, or a file with --submission")
    store = storage.open() if submission is not None else storage.open_usable()
    if submission is not None:
        from tasks.external import GROUP, external_runs

        with external_runs(read_external(submission)) as external_store:
            runs, rows = runs_of(external_store, GROUP), find_plagiarism(external_store, GROUP, notebooks=store)
    else:
        runs, rows = runs_of(store, str(run_group)), find_plagiarism(store, str(run_group), against)
    for row in rows:
        if row["flagged"]:
            location = f"{row['competition_id']}/{row['seed']} {row['file']}"
            shares = (row["similarity"], row["of_file"], row["of_other"])
            figures = "{:4.0%} similar, {:4.0%} of it, {:4.0%} of the other".format(*shares)
            say(clean(f"{figures}: {location} ~ {row['other_kind']} {row['other']}"))
    for name in sorted({run.record.competition_id for run in runs}):
        if registry.get(name).facts.source == "kaggle" and read_index(store, name) is None:
            click.echo(f"{name}: no notebooks to compare with; pull them with: mlebench kernels {name}", err=True)
    flagged = sum(row["flagged"] for row in rows)
    pairs = f"{counted(len(rows), 'pair')} with something in common"
    say(f"{counted(len(runs), 'run')} compared, {pairs}, {flagged} to look at")
    if output_dir is not None:
        say(str(write_csv(output_dir, "plagiarism", rows, TABLES["plagiarism"].names)))
    if run_group is not None:
        refresh_report(store, run_group)
    answer([row for row in rows if row["flagged"]])
