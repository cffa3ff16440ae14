"""mlebench split-noise."""

from __future__ import annotations

import math

import click

from common.units import counted
from flows.commands.answers import answer, say, takes_json
from flows.commands.options import RUN_GROUP, StoreOptions, takes
from flows.commands.refresh import refresh_report


@click.command("split-noise")
@click.argument("run_group", type=RUN_GROUP)
@click.option("--halves", type=click.IntRange(20, 10_000), default=200, show_default=True, help="Halves for each run.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=20.0,
    show_default=True,
    help="Time for each run, after which fewer halves have to do.",
)
@takes(storage=StoreOptions)
@takes_json
def command(run_group: str, halves: int, seconds: float, storage: StoreOptions) -> None:
    """Measure how much scores and medals of RUN_GROUP depend on which rows are in the test set.

    Each valid submission is scored on random halves of its test set. Prints the standard error of each score and the
    probability of a medal on another test set of the same size, which are written to tables/split_noise and the report.
    """
    from common.cleaning import clean
    from grading.words import number
    from tasks.split_noise import measure_split_noise

    store = storage.open_usable()
    measured_count = total = 0
    for row in measure_split_noise(store, run_group, halves, seconds):
        total += 1
        result = row.get("message") or ""
        if not math.isnan(row.get("standard_error", math.nan)):
            measured_count += 1
            chance = f"a medal with probability {row['any_medal_probability']:.2f}"
            result = (
                f"{number(row['score'])} ± {number(row['standard_error'])}, {chance}, {counted(row['units'], 'unit')}"
            )
        answer(row)
        say(clean(f"{row['competition_id']}/{row['seed']} {row['edition']}: {result}"))
    say(f"{measured_count} of {total} scores have a standard error")
    refresh_report(store, run_group)
