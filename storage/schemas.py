"""Schemas of the tables below `tables/`, the only definition of their columns.

The Arrow schemas of Parquet files are derived from them, so that all files of a table have the same types, and
`docs/tables.md` is generated from them. Every column may be null.

A change of a table increases `SCHEMA_VERSION`: a program that does not know a newer version refuses its files.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Literal

from storage.columns import (
    CATEGORY,
    COMPETITION,
    COMPLEXITY,
    EDITION,
    MEDALS,
    RUN_ID,
    SEED,
    WHO,
    Column,
    TableSchema,
    flags,
    scores,
)
from storage.episodes_schema import EPISODES
from storage.statistics_schemas import STATISTICS, Statistics

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_VERSION = 1
"""Version of the tables, and of the records they are created from."""
METADATA_KEY = b"mlebench.schema_version"
"""Key of the schema version in the metadata of a Parquet file."""

Table = (
    Literal[
        "runs",
        "grades",
        "snapshots",
        "usage",
        "validations",
        "own_validations",
        "split_noise",
        "examinations",
        "plagiarism",
        "violations",
        "familiarity",
        "familiarity_correlation",
        "episodes",
    ]
    | Statistics
)


@cache
def arrow_schema(table: Table) -> pa.Schema:
    """The Arrow schema of the table's Parquet files."""
    import pyarrow as pa

    types = {
        "string": pa.string(),
        "int64": pa.int64(),
        "float64": pa.float64(),
        "bool": pa.bool_(),
        "timestamp": pa.timestamp("us", tz="UTC"),
    }
    fields = [pa.field(column.name, types[column.type]) for column in TABLES[table]]
    return pa.schema(fields, metadata={METADATA_KEY: str(SCHEMA_VERSION).encode()})


_RUNS = TableSchema(
    "a finished run of an agent on a competition",
    (
        *WHO,
        Column("edition", "string", "Edition of the dataset that the agent worked on."),
        Column("backend", "string", "Where the agent ran: `process`, `docker` or `rootless`."),
        Column("status", "string", "completed, timeout, memory, disk, processes, crashed, lost or failed."),
        Column("message", "string", "Why the run did not complete."),
        Column("exit_code", "int64", "Exit code of the agent's start.sh; null if it was killed."),
        Column("started_at", "timestamp", "When the agent was started."),
        Column("finished_at", "timestamp", "When the agent had ended."),
        Column("duration_seconds", "float64", "Time that the agent ran.", "s"),
        Column("submission_exists", "bool", "The agent left a submission."),
        Column("time_limit_seconds", "float64", "Wall-clock limit.", "s"),
        Column("code_fingerprint", "string", "Hash of the agent's folder and definition."),
        Column("network", "string", "Network policy; null for the process backend."),
        Column("runtime", "string", "Container runtime; null for other backends."),
        Column("obfuscated", "bool", "The agent was not told which competition it was; null if it was told."),
        Column("scorer", "bool", "The agent could score predictions on truth of its own; null if it could not."),
        Column("feedback", "float64", "Share of the test units on which it could ask for scores; null if of none."),
        Column("feedback_calls_per_day", "int64", "Public scores that it could ask for within 24 hours."),
        Column("feedback_missing", "string", "Why the run has no feedback although it was requested; otherwise null."),
        Column("image", "string", "Name of the container image or root file system; null for the process backend."),
        Column("image_digest", "string", "Digest of the container image."),
        Column("cpus", "int64", "Processor limit; null if there was none.", "cores"),
        Column("memory_bytes", "int64", "Memory limit; null if there was none.", "bytes"),
        Column("disk_bytes", "int64", "Disk limit; null if there was none.", "bytes"),
        Column("enforcement", "string", "What enforced these limits, such as `memory: cgroup`; null if not recorded."),
        Column("gpus", "int64", "GPUs that the agent could use; null if the definition does not say."),
        Column("knowledge_cutoff", "string", "Month of the model's newest training data; null if not stated."),
        Column("split", "string", "Split of your own that it was made for; null if for none of them."),
        Column("split_version", "string", "Version of this split."),
        Column("split_digest", "string", "Hash of the ids of its competitions: the start of a SHA-256."),
        Column("split_description", "string", "What its competitions are, with their number, version and date."),
        Column("check_marks", "int64", "Places marked with CHECK in the competition when it began; null if none."),
        Column("validation_calls", "int64", "Requests to the validation service."),
        Column("scorer_calls", "int64", "Requests to the scorer; null if the run had none."),
        Column("public_score_calls", "int64", "Requests for public scores, without refused ones; null if it had none."),
        Column("gateway_requests", "int64", "Requests to language models that reached a provider or tried to."),
        Column("gateway_tokens", "int64", "Input and output tokens of these requests.", "tokens"),
        Column("gateway_cost_usd", "float64", "Their cost; null if the price of one is unknown.", "USD"),
        Column("tries", "int64", "How often the run was begun: above 1, machines or engines ended it before."),
        Column("resumed", "int64", "How often it continued from a checkpoint; null if never."),
        Column("host", "string", "Name of the host on which it ran in the end."),
        Column("prices", "string", "Version of the list prices; null if the run had no gateway."),
        Column("hardware", "string", "Operating system, processor, cores, memory and GPUs of the machine."),
        Column("package_version", "string", "Version of mlebench-pipeline that made the run."),
        Column("git_commit", "string", "Its git commit, or how it was installed."),
        Column("ledger_head", "string", "SHA-256 of the run's ledger, `ledger.jsonl`."),
        Column("ledger_entries", "int64", "Number of lines of the ledger."),
        Column("ledger_signature", "string", "Signature of `ledger_head` by MLEBENCH_LEDGER_KEY; null without a key."),
        Column("submission_from", "string", "URL of the run whose files a regraded copy uses; null for a run itself."),
        Column("files", "string", "Folder in the run's folder that has its files; null if that is the run's folder."),
        Column("dataset_key", "string", "Content key of the dataset that the agent worked on."),
        Column("edition_version", "string", "Version of the edition, such as `v2.1`; see docs/editions.md."),
    ),
)

_GRADES = TableSchema(
    "a graded submission: a run in an edition",
    (
        Column("outcome", "string", "`valid`, `invalid`, `missing`, or `failed` if the grader itself failed."),
        Column("message", "string", "Why there is no score, or what is to be said about it."),
        *WHO,
        Column("edition", "string", "Edition whose grader and answers were used."),
        COMPLEXITY,
        CATEGORY,
        Column("score", "float64", "Score, rounded to 5 decimals; null if there is none or it is NaN.", "metric"),
        *scores(
            {
                "gold_threshold": "Score that gold needs.",
                "silver_threshold": "Score that silver needs.",
                "bronze_threshold": "Score that bronze needs.",
                "median_threshold": "Median of the leaderboard.",
            }
        ),
        *flags(
            {
                **MEDALS,
                "submission_exists": "There is a submission.",
                "valid_submission": "The submission has a score.",
                "is_lower_better": "Lower scores are better.",
            }
        ),
        Column("dense_reward", "float64", "Share of teams beaten, see docs/statistics.md; null if unknown.", "0-1"),
        Column("feedback", "float64", "Share of test units that `score` leaves out, because the agent had feedback."),
        *scores(
            {
                "public_score": "With feedback: score of the same file on these units, which do not count.",
                "score_with_public_rows": "With feedback: its score on all rows, also those with public scores.",
            }
        ),
        Column("created_at", "timestamp", "When the submission was graded."),
        Column("submission_path", "string", "Path or URL of the submission."),
        Column("leaderboard", "string", "Where the thresholds come from: `stored`, or a fetched leaderboard and when."),
        Column("dataset_key", "string", "Content key of the dataset with the answers."),
        Column("edition_version", "string", "Version of the edition, such as `v2.1`; see docs/editions.md."),
    ),
)

_SNAPSHOTS = TableSchema(
    "a version of a submission, kept while the agent ran, or a file with a public score, graded",
    (
        *WHO,
        Column("at_seconds", "float64", "Time since the start of the run.", "s"),
        Column("score", "float64", "Score, rounded to 5 decimals; null if there is none or it is NaN.", "metric"),
        *flags({"valid_submission": "The version has a score.", **MEDALS}),
        Column("edition", "string", "Edition whose grader and answers were used; null: that of the run."),
        Column("outcome", "string", "As in `grades`."),
        Column("leaderboard", "string", "Where the thresholds come from, as in `grades`."),
        Column("submission", "int64", "Number of a file with a public score, n of `public_scores/n.csv`; else null."),
        *scores(
            {
                "public_score": "Of such a file: its score on the public part. `score` is on the private part.",
                "told": "Of such a file: the best public score that the agent was told after it.",
            }
        ),
        Column("chosen", "bool", "Of such a file: it is in the agent's final choice."),
    ),
)

_USAGE = TableSchema(
    "a request of a run to a language model that reached a provider or tried to",
    (
        RUN_ID,
        COMPETITION,
        SEED,
        Column("model", "string", "The model that was asked for."),
        Column("input_tokens", "int64", "Tokens of the prompt.", "tokens"),
        Column("output_tokens", "int64", "Tokens of the answer.", "tokens"),
        Column("cost_usd", "float64", "Cost; null if the model's price is unknown.", "USD"),
        Column("latency_seconds", "float64", "Time until the answer was complete.", "s"),
        Column("started_at", "timestamp", "When the request arrived."),
        Column("status", "string", "ok, error, credentials, unreachable, timeout or cut."),
        Column("estimated", "bool", "The provider did not report tokens; these are the most that it can have used."),
    ),
)

_VALIDATIONS = TableSchema(
    "a submission that an agent had checked by the validation service of its run",
    (
        *WHO,
        Column("at_seconds", "float64", "Time since the start of the run.", "s"),
        Column("verdict", "string", "`valid`, `invalid`, or `failed` if it could not be checked."),
    ),
)

_OWN_VALIDATIONS = TableSchema(
    "a candidate of an agent with a validation score that it reported itself",
    (
        *WHO,
        Column("at_seconds", "float64", "Time since the start of the run.", "s"),
        Column("own_score", "float64", "The agent's validation score.", "metric"),
        Column("submitted", "bool", "The agent handed the candidate in."),
        Column("name", "string", "The agent's name of the candidate."),
    ),
)

_SPLIT_NOISE = TableSchema(
    "a graded run, and how much its score depends on the choice of test rows",
    (
        *WHO,
        EDITION,
        Column("score", "float64", "Score on all rows, rounded to 5 decimals.", "metric"),
        Column("standard_error", "float64", "Standard error over choices of test rows; null if unknown.", "metric"),
        *scores(
            {
                f"{name}_probability": f"Probability that another test set of this size gives {words}."
                for name, words in {
                    "any_medal": "a medal",
                    "gold_medal": "gold",
                    "silver_medal": "silver",
                    "bronze_medal": "bronze",
                    "above_median": "a score above the median",
                }.items()
            },
            "0-1",
        ),
        Column("units", "int64", "Rows, patients, pages ... of the test set that were drawn as wholes."),
        Column("halves", "int64", "Random halves of the test set that were scored."),
        Column("message", "string", "Why there is no standard error."),
    ),
)

_EXAMINATIONS = TableSchema(
    "an integrity check of a run group",
    (
        Column("stage", "string", "`plagiarism` or `violations`."),
        Column("runs", "int64", "Number of runs examined."),
        Column("flagged", "int64", "Number of runs that a person should look at."),
        Column("by", "string", "What examined them."),
        Column("at", "timestamp", "When they were examined."),
    ),
)

_PLAGIARISM = TableSchema(
    "a file of a run and a notebook or a file of another agent's run that share code",
    (
        *WHO,
        Column("file", "string", "Path of the file below the run's code folder."),
        Column("other_kind", "string", "`kernel` (a public notebook), `run`, or `unreadable`."),
        Column("other", "string", "The notebook, the other run's file, or why this one could not be read."),
        Column("url", "string", "Address of the notebook; empty for a run."),
        Column("similarity", "float64", "Jaccard similarity of the fingerprints.", "fraction"),
        Column("of_file", "float64", "Share of the file that occurs in the other.", "fraction"),
        Column("of_other", "float64", "Share of the other that occurs in the file.", "fraction"),
        Column("shared_tokens", "int64", "Tokens that both have.", "tokens"),
        Column("fragments", "int64", "Number of shared fragments."),
        Column("flagged", "bool", "A person should look at the pair."),
        Column("matched", "string", "JSON: the longest fragments with their lines; empty list if not flagged."),
    ),
)

_VIOLATIONS = TableSchema(
    "a finding in the code or the logs of a run",
    (
        *WHO,
        Column("rule", "string", "The rule that may be broken."),
        Column("severity", "string", "`violation` (a person should look at it) or `notice`."),
        Column("file", "string", "Path of the file; empty if the finding is about the whole run."),
        Column("line", "int64", "Line of the file, from 1; 0 if the finding is about the whole run."),
        Column("quote", "string", "The line that the finding rests on."),
        Column("why", "string", "What is wrong with it."),
        Column("by", "string", "`static`, or the language model that found it."),
    ),
)

_KIND = Column("kind", "string", "Kind of text: description, discussion, all, or places: random places in all of them.")
_MODEL = Column("model", "string", "The language model that was measured.")

_FAMILIARITY = TableSchema(
    "a competition and a kind of text, measured with a language model",
    (
        COMPETITION,
        _MODEL,
        _KIND,
        Column("texts", "int64", "Number of texts."),
        Column("tokens", "int64", "Their length.", "tokens"),
        Column("mean_probability", "float64", "Mean probability that the model gives to the texts' tokens.", "0-1"),
        Column("human_percentile", "float64", "Share of teams that the group's runs beat on average.", "%"),
        Column("normalised_score", "float64", "0: sample submission, 1: gold; kind `places` only.", "0-1"),
    ),
)

_CORRELATION = TableSchema(
    "a kind of text: how a model's familiarity goes with the scores of a run group",
    (
        _MODEL,
        _KIND,
        Column("n", "int64", "Number of competitions."),
        Column("pearson", "float64", "Pearson's coefficient of familiarity and human percentile.", "-1 to 1"),
        Column("pearson_low", "float64", "Lower end of its 95 % interval.", "-1 to 1"),
        Column("pearson_high", "float64", "Upper end of its 95 % interval.", "-1 to 1"),
        Column("pearson_p", "float64", "Its p-value: the hypothesis is that there is no correlation.", "0-1"),
        Column("spearman", "float64", "Spearman's coefficient.", "-1 to 1"),
        Column("spearman_low", "float64", "Lower end of its 95 % interval.", "-1 to 1"),
        Column("spearman_high", "float64", "Upper end of its 95 % interval.", "-1 to 1"),
        Column("spearman_p", "float64", "Its p-value.", "0-1"),
        Column("against", "string", "`human percentile` or `normalised score`."),
    ),
)

TABLES: dict[Table, TableSchema] = {
    "runs": _RUNS,
    "grades": _GRADES,
    "snapshots": _SNAPSHOTS,
    "usage": _USAGE,
    "validations": _VALIDATIONS,
    "own_validations": _OWN_VALIDATIONS,
    "split_noise": _SPLIT_NOISE,
    "examinations": _EXAMINATIONS,
    "plagiarism": _PLAGIARISM,
    "violations": _VIOLATIONS,
    "familiarity": _FAMILIARITY,
    "familiarity_correlation": _CORRELATION,
    "episodes": EPISODES,
    **dict(STATISTICS.items()),  # a dict of other names, as mypy sees it
}
