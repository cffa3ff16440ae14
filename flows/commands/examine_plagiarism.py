"""The examination `plagiarism` of `mlebench examine`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import click

from common.units import counted, listed
from flows.commands.answers import answer, say
from flows.commands.external import Examined, write_csv
from flows.commands.options import option


@dataclass(frozen=True)
class PlagiarismOptions:
    """What the code is compared with."""

    TITLE: ClassVar[str] = "Plagiarism"
    against: Annotated[
        tuple[str, ...],
        option(
            "--against",
            multiple=True,
            metavar="GROUP",
            help="Compare with the runs of this group, besides notebooks; repeatable. Default: all others.",
        ),
    ] = ()


def examine_plagiarism(examined: Examined, options: PlagiarismOptions, output_dir: Path | None) -> int:
    """Compare the code of the runs with public notebooks and with other agents' runs; returns the exit code.

    Results of another system are compared with notebooks only.
    """
    from common.cleaning import clean
    from competitions import registry
    from storage.runs.folders import runs_of
    from storage.schemas import TABLES
    from storage.sources.kaggle.kernels import read_index
    from tasks.plagiarism import find_plagiarism

    runs = runs_of(examined.store, examined.run_group)
    if examined.of_others:
        rows = find_plagiarism(examined.store, examined.run_group, notebooks=examined.home)
    else:
        rows = find_plagiarism(examined.store, examined.run_group, options.against)
    for row in rows:
        if row["flagged"]:
            location = f"{row['competition_id']}/{row['seed']} {row['file']}"
            shares = (row["similarity"], row["of_file"], row["of_other"])
            figures = "{:4.0%} similar, {:4.0%} of it, {:4.0%} of the other".format(*shares)
            say(clean(f"{figures}: {location} ~ {row['other_kind']} {row['other']}"))
    names = sorted({run.record.competition_id for run in runs})
    on_kaggle = (name for name in names if registry.get(name).facts.source == "kaggle")
    if lacking := [name for name in on_kaggle if read_index(examined.home, name) is None]:
        pull = f"mlebench kernels {' '.join(lacking[:5])}"
        click.echo(f"no notebooks to compare with: {listed(lacking, 5)}; pull them with: {pull}", err=True)
    flagged = sum(row["flagged"] for row in rows)
    pairs = f"{counted(len(rows), 'pair')} with something in common"
    say(f"{counted(len(runs), 'run')} compared, {pairs}, {flagged} to look at")
    if output_dir is not None:
        say(str(write_csv(output_dir, "plagiarism", rows, TABLES["plagiarism"].names)))
    answer([{"kind": "plagiarism", **row} for row in rows if row["flagged"]])
    return 0
