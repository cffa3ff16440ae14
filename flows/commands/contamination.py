"""mlebench contamination."""

from __future__ import annotations

import math

import click

from common.units import counted
from flows.commands.answers import answer, say, takes_json
from flows.commands.options import RUN_GROUP, StoreOptions, takes
from flows.commands.refresh import refresh_report


@click.command("contamination")
@click.argument("run_group", type=RUN_GROUP)
@click.option(
    "--model",
    help="Language model, usually the one that the group's agent used. Default: MLEBENCH_FAMILIARITY_MODEL.",
)
@click.option(
    "--kernels",
    type=click.IntRange(0),
    default=5,
    show_default=True,
    help="Number of pulled notebooks to read for each competition.",
)
@click.option(
    "--places",
    type=click.IntRange(0),
    default=1000,
    show_default=True,
    help="Number of random places in the texts for the figure as published; 0: none.",
)
@takes(storage=StoreOptions)
@takes_json
def command(run_group: str, model: str | None, kernels: int, places: int, storage: StoreOptions) -> None:
    """Measure how familiar a model is with the competitions of RUN_GROUP, and whether scores correlate with that.

    Familiarity is the mean probability that the model assigns to the tokens of a competition's description and
    discussions. It is correlated with the share of teams beaten; at random places, as published, with scores between
    the sample submission (0, as an invalid one) and gold (1). The provider's completions endpoint must support `echo`
    with `logprobs`, as vLLM does. A report of this group and one that was run with --obfuscated compares them, too.
    """
    from common.settings import get_settings
    from tasks.familiarity import find_familiarity

    model = model or get_settings().familiarity_model
    if model is None:
        raise click.UsageError("no model to measure: give --model, or set MLEBENCH_FAMILIARITY_MODEL")
    store = storage.open_usable()
    show = lambda name: click.echo(f"measuring {name} ...", err=True)  # noqa: E731
    rows, correlations = find_familiarity(store, run_group, model, kernels, places, on_next=show)
    for row in rows:
        if row["kind"] == "all":
            beats = row["human_percentile"]
            score = f"beats {beats:.0f} % of the teams" if beats == beats else "no percentile known"
            say(f"{row['mean_probability']:.3f}  {row['competition_id']} ({row['tokens']} tokens; {score})")
    for correlation in correlations:
        interval = "[{spearman_low:+.2f}, {spearman_high:+.2f}]".format(**correlation)
        chance = "" if math.isnan(correlation["pearson_p"]) else f" (p = {correlation['pearson_p']:.3f})"
        say(
            f"{correlation['kind']}: Spearman {correlation['spearman']:+.2f} {interval}, "
            f"Pearson {correlation['pearson']:+.2f}{chance}, "
            f"{counted(correlation['n'], 'competition')}, against the {correlation['against']}"
        )
    refresh_report(store, run_group)
    answer({"run_group": run_group, "model": model, "familiarity": rows, "correlations": correlations})
