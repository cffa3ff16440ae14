"""Schemas of the tables with statistics; see `storage.schemas`."""

from __future__ import annotations

from typing import Literal

from storage.columns import (
    AGENT,
    CATEGORY,
    COMPETITION,
    COMPLEXITY,
    EDITION,
    MEDALS,
    RUN_ID,
    SEED,
    Column,
    TableSchema,
    scores,
)

Statistics = Literal[
    "comparisons",
    "aggregates/rates",
    "aggregates/by_seed",
    "aggregates/gaps",
    "aggregates/pass_at_k",
    "aggregates/best_of_k",
    "aggregates/competitions",
    "aggregates/over_time",
    "aggregates/usage_by_run",
    "aggregates/usage",
]

_RATES = (*MEDALS, "valid_submission", "submission_exists")

_COMPARISONS = TableSchema(
    "a competition that both of two compared groups have; the partition is named `A..B`",
    (
        COMPETITION,
        COMPLEXITY,
        Column("change", "string", "better, worse, mixed or same: B against A."),
        *scores(
            {
                "score_a": "Mean score of A over seeds.",
                "score_b": "Mean score of B over seeds.",
                "score_difference": "B - A.",
                "score_sem": "Standard error of the difference.",
            }
        ),
        Column("seeds_a", "int64", "Graded attempts of A."),
        Column("seeds_b", "int64", "Graded attempts of B."),
        *(
            Column(f"{rate}_{side}", "float64", f"Share of {side.upper()}'s attempts with `{rate}`.", "fraction")
            for rate in _RATES
            for side in "ab"
        ),
        Column("a", "string", "Name of A as it was given: a run group, or GROUP@EDITION."),
        Column("b", "string", "Name of B."),
    ),
)

_SERIES = (AGENT, EDITION)
_SPLIT = Column("split", "string", "Complexity split or category; `all` is low, medium and high together.")
_RATE = Column("rate", "string", f"Which rate: {', '.join(_RATES)}.")
_BY = Column("by", "string", "What `split` names: `complexity` or `category`.")
_INTERVAL = (
    Column("ci_low", "float64", "Lower end of the 95 % interval; docs/statistics.md says of what.", "fraction"),
    Column("ci_high", "float64", "Upper end of the 95 % interval.", "fraction"),
)
_ATTEMPT = (
    Column("seed", "int64", "Number of the attempt; null for a run without a seed."),
    Column("run_id", "string", "Name of the run, for a run without a seed; else null."),
)

_SPENT = (
    Column("calls", "int64", "Number of requests."),
    Column("input_tokens", "float64", "Tokens of the prompts; null if unknown.", "tokens"),
    Column("output_tokens", "float64", "Tokens of the answers; null if unknown.", "tokens"),
    Column("cost_usd", "float64", "Cost; null if the price of a request is unknown.", "USD"),
    Column("latency_seconds", "float64", "Sum of the times until the answers.", "s"),
)

STATISTICS: dict[Statistics, TableSchema] = {
    "comparisons": _COMPARISONS,
    "aggregates/rates": TableSchema(
        "a series (run group, agent, edition), split and rate",
        (
            *_SERIES,
            _SPLIT,
            _RATE,
            Column("mean", "float64", "Mean over competitions of the mean over each one's runs.", "fraction"),
            Column(
                "sem",
                "float64",
                "Standard error over the rates of seeds; null with unlike or fewer than two.",
                "fraction",
            ),
            *_INTERVAL,
            Column("seeds", "int64", "Seeds that count."),
            Column("competitions", "int64", "Competitions that count."),
            _BY,
            Column("incomplete", "string", "How ungraded runs were treated: `available`, `exclude` or `fail`."),
            Column("both_low", "float64", "Lower end over other competitions, too.", "fraction"),
            Column("both_high", "float64", "Upper end of that interval.", "fraction"),
            Column("runs", "int64", "Graded runs."),
            Column("missing", "int64", "Runs of these competitions and seeds without a grade."),
            Column("if_failed", "float64", "The rate of all runs if the missing ones had failed.", "fraction"),
            Column("if_earned", "float64", "The rate of all runs if the missing ones had succeeded.", "fraction"),
            Column("counted", "string", "Which competitions count: the name of a split, or `what was run`."),
        ),
    ),
    "aggregates/by_seed": TableSchema(
        "a series, split, seed and rate",
        (
            *_SERIES,
            _SPLIT,
            *_ATTEMPT,
            _RATE,
            Column("value", "float64", "Share of competitions for which it holds; null if not counted.", "fraction"),
            Column("counted", "bool", "The seed counts."),
            _BY,
        ),
    ),
    "aggregates/gaps": TableSchema(
        "a competition that is not graded in a seed of a series",
        (
            *_SERIES,
            _SPLIT,
            *_ATTEMPT,
            COMPETITION,
            Column(
                "reason",
                "string",
                "`missing` (there is no grade), `failed` (the grader failed) or `planned` (the competition or the seed "
                "was never run).",
            ),
            Column("treatment", "string", "`left out`, `seed excluded`, `counted as failure` or `not counted`."),
            _BY,
        ),
    ),
    "aggregates/pass_at_k": TableSchema(
        "a series, split, rate and number of attempts",
        (
            *_SERIES,
            _SPLIT,
            _RATE,
            Column("k", "int64", "Number of attempts."),
            Column("mean", "float64", "Chance that at least one of k attempts succeeds.", "fraction"),
            *_INTERVAL,
            Column("competitions", "int64", "Competitions with at least k graded attempts."),
        ),
    ),
    "aggregates/best_of_k": TableSchema(
        "a series, competition and number of attempts",
        (
            *_SERIES,
            COMPETITION,
            Column("k", "int64", "Number of attempts."),
            Column("attempts", "int64", "Graded attempts that the estimate rests on."),
            Column("score", "float64", "Expected best score of k attempts; null if there is none.", "metric"),
        ),
    ),
    "aggregates/competitions": TableSchema(
        "a series and competition",
        (
            *_SERIES,
            COMPETITION,
            COMPLEXITY,
            CATEGORY,
            Column("attempts", "int64", "Graded attempts."),
            Column("valid", "int64", "Attempts with a score."),
            Column("medals", "int64", "Attempts with a medal."),
            *scores({"mean_score": "Mean over attempts.", "score_sem": "Its standard error.", "best_score": "Best."}),
            Column("human_percentile", "float64", "Mean share of the leaderboard's teams that were beaten.", "%"),
        ),
    ),
    "aggregates/over_time": TableSchema(
        "a series, split, rate and moment of the runs",
        (
            *_SERIES,
            _SPLIT,
            _RATE,
            Column("at_seconds", "float64", "Time since the start of the runs.", "s"),
            Column("mean", "float64", "Mean of the seeds' rates with the newest snapshots until then.", "fraction"),
            Column("sem", "float64", "Standard error over the rates of seeds; null with fewer than two.", "fraction"),
            *_INTERVAL,
            Column("seeds", "int64", "Seeds that count."),
            Column("competitions", "int64", "Competitions that count."),
        ),
    ),
    "aggregates/usage_by_run": TableSchema(
        "a run that asked language models",
        (RUN_ID, COMPETITION, SEED, Column("models", "string", "The models, separated by commas."), *_SPENT),
    ),
    "aggregates/usage": TableSchema(
        "a series whose runs asked language models",
        (
            *_SERIES,
            Column("runs", "int64", "Graded runs."),
            Column("runs_with_usage", "int64", "Runs that asked a model, graded or not; tokens and costs are theirs."),
            Column("medals", "int64", "Medals won."),
            *_SPENT,
            Column("cost_per_run", "float64", "Cost of a run that asked a model.", "USD"),
            Column("tokens_per_run", "float64", "Tokens of a run that asked a model.", "tokens"),
            Column("cost_per_medal", "float64", "Cost of all runs over the medals; null without a medal.", "USD"),
            Column("tokens_per_medal", "float64", "Tokens of all runs over the medals.", "tokens"),
            Column("hours", "float64", "Durations of all runs, graded or not; null if one is unknown.", "h"),
            *(
                column
                for unit in ("dollar", "hour")
                for column in (
                    Column(f"medals_per_{unit}", "float64", f"Medals over the {unit}s of all runs."),
                    Column(f"medals_per_{unit}_low", "float64", "Lower end of the 95 % interval."),
                    Column(f"medals_per_{unit}_high", "float64", "Upper end of the 95 % interval."),
                )
            ),
        ),
    ),
}
