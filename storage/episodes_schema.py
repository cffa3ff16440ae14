"""Schema of the table of episodes; see `storage.schemas`."""

from __future__ import annotations

from storage.columns import COMPETITION, EDITION, Column, TableSchema

EPISODES = TableSchema(
    "an episode in which an agent was trained or tried; its `run_group` is the name of the training",
    (
        Column("episode_id", "string", "Name of the episode, unique in its `run_group`."),
        COMPETITION,
        EDITION,
        Column("dataset_key", "string", "Content key of the dataset."),
        Column("seed", "int64", "Seed of the reset; null if there was none."),
        Column("division", "string", "`train`, or `eval` for a competition on which agents are evaluated."),
        Column("test_scores", "bool", "The reward is a score on the whole test set of the benchmark."),
        Column("backend", "string", "Where the sandbox was: `process` or `docker`."),
        Column("started_at", "timestamp", "When the episode began."),
        Column("duration_seconds", "float64", "Time until it had ended.", "s"),
        Column("steps", "int64", "Number of actions."),
        Column("public_scores", "int64", "Scores on the public part of the test set that the agent was told."),
        Column("end", "string", "Why it ended: submitted, which limit, or `abandoned`: it has no reward."),
        Column("valid", "bool", "The submission has a score."),
        Column("score", "float64", "Score of the submission; null if there is none.", "metric"),
        Column("part", "string", "What was scored: the `private` part of the test set, or the `whole`."),
        Column("medal", "string", "gold, silver or bronze; null without a medal."),
        Column("reward", "float64", "Share of teams beaten, see docs/statistics.md.", "0-1"),
        Column("human_percentile", "float64", "Share of teams beaten; null where it is estimated.", "%"),
        Column("improvement", "float64", "How much better the score is than that of the sample submission.", "metric"),
    ),
)
