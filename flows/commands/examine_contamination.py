"""The examination `contamination` of `mlebench examine`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import click

from common.units import counted
from flows.commands.answers import answer, say
from flows.commands.external import Examined
from flows.commands.options import option
from flows.commands.types import whole


@dataclass(frozen=True)
class ContaminationOptions:
    """The language model, and the texts that it reads."""

    TITLE: ClassVar[str] = "Contamination"
    model: Annotated[
        str | None,
        option(
            "--model",
            metavar="NAME",
            help="Language model, usually the one that the group's agent used. Default: MLEBENCH_FAMILIARITY_MODEL.",
        ),
    ] = None
    kernels: Annotated[
        int,
        option(
            "--kernels",
            type=whole(),
            show_default=True,
            help="Number of pulled notebooks to read for each competition.",
        ),
    ] = 5
    places: Annotated[
        int,
        option(
            "--places",
            type=whole(),
            show_default=True,
            help="Random token positions at which familiarity is also measured, as Chan et al. 2024 do; 0: none.",
        ),
    ] = 1000

    def chosen_model(self) -> str | None:
        """The model that the option or the settings name."""
        from common.settings import get_settings

        return self.model or get_settings().familiarity_model

    def require_model(self) -> str:
        """The model that is measured. Raises `UsageError` if none is named."""
        model = self.chosen_model()
        if model is None:
            raise click.UsageError("no model to measure: give --model, or set MLEBENCH_FAMILIARITY_MODEL")
        return model


def examine_contamination(examined: Examined, options: ContaminationOptions) -> int:
    """Measure how familiar a model is with the competitions of the group; returns the exit code.

    Familiarity is correlated with the share of teams beaten; at random places, as published, with scores between the
    sample submission (0, as an invalid one) and gold (1). A report of this group and one that was run with --obfuscated
    compares them, too.
    """
    from tasks.familiarity import find_familiarity

    model = options.require_model()
    store, run_group = examined.store, examined.run_group
    show = lambda name: click.echo(f"measuring {name} ...", err=True)  # noqa: E731
    rows, correlations = find_familiarity(store, run_group, model, options.kernels, options.places, on_next=show)
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
    answer(
        {
            "kind": "contamination",
            "run_group": run_group,
            "model": model,
            "familiarity": rows,
            "correlations": correlations,
        }
    )
    return 0
