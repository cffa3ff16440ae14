"""Schemas of the tables below `tables/`, the only definition of their columns.

The Arrow schemas of Parquet files are derived from them, so that all files of a table have the same types, and
`docs/tables.md` is generated from them. Every column may be null.

To change a table, increase `SCHEMA_VERSION` and set `since` of new columns to the new version. Columns are never
renamed and never change their type, so older files are read by adding the missing columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_VERSION = 2
"""Version of the tables, and of the records they are created from. Files without a version have version 0."""
METADATA_KEY = b"mlebench.schema_version"
"""Key of the schema version in the metadata of a Parquet file."""

Type = Literal["string", "int64", "float64", "bool", "timestamp"]

Table = Literal[
    "runs",
    "grades",
    "snapshots",
    "usage",
    "examinations",
    "plagiarism",
    "violations",
    "familiarity",
    "familiarity_correlation",
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


@dataclass(frozen=True)
class Column:
    """One column: its type, what a value means, its unit, and the schema version that introduced it."""

    name: str
    type: Type
    meaning: str
    unit: str = ""
    since: int = 0


@dataclass(frozen=True)
class TableSchema:
    """A table: what a row describes, and its columns without `run_group`, which is the name of the partition."""

    row: str
    columns: tuple[Column, ...]

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in their order."""
        return tuple(column.name for column in self.columns)


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


def _flags(meanings: dict[str, str]) -> tuple[Column, ...]:
    return tuple(Column(name, "bool", meaning) for name, meaning in meanings.items())


def _scores(meanings: dict[str, str], unit: str = "metric") -> tuple[Column, ...]:
    return tuple(Column(name, "float64", meaning, unit) for name, meaning in meanings.items())


_RUN_ID = Column("run_id", "string", "Name of the run, unique in its run group.")
_COMPETITION = Column("competition_id", "string", "The competition.")
_SEED = Column("seed", "int64", "Number of the attempt at the competition: 0, 1, ...")
_AGENT = Column("agent", "string", "The agent, with its variant: `aide@gpt-4o`.")
_EDITION = Column("edition", "string", "`v1` or `v2`: the edition of the dataset.")
_COMPLEXITY = Column("complexity", "string", "Complexity split of the competition: low, medium, high, dev or demo.")
_CATEGORY = Column("category", "string", "Category of the competition, such as Image Classification.")
_WHO = (_RUN_ID, _COMPETITION, _SEED, _AGENT)

_MEDALS = {
    "any_medal": "The rounded score reaches a medal threshold.",
    "gold_medal": "The medal is gold.",
    "silver_medal": "The medal is silver.",
    "bronze_medal": "The medal is bronze.",
    "above_median": "The rounded score is better than the median.",
}

_RUNS = TableSchema(
    "a finished run of an agent on a competition",
    (
        *_WHO,
        Column("edition", "string", "Edition of the dataset that the agent worked on."),
        Column("backend", "string", "Where the agent ran: `process` or `docker`."),
        Column("status", "string", "completed, timeout, memory, disk, processes, crashed, lost or failed."),
        Column("message", "string", "Why the run did not complete."),
        Column("exit_code", "int64", "Exit code of the agent's start.sh; null if it was killed."),
        Column("started_at", "timestamp", "When the agent was started."),
        Column("finished_at", "timestamp", "When the agent had ended."),
        Column("duration_seconds", "float64", "Time that the agent ran.", "s"),
        Column("submission_exists", "bool", "The agent left a submission."),
        Column("time_limit_seconds", "float64", "Wall-clock limit.", "s"),
        Column("code_fingerprint", "string", "Hash of the agent's folder and definition."),
        Column("network", "string", "Network policy of the container; null for the process backend."),
        Column("runtime", "string", "Container runtime; null for the process backend."),
        Column("obfuscated", "bool", "The agent was not told which competition it was; null if it was told."),
        Column("image", "string", "Name of the container image; null for the process backend."),
        Column("image_digest", "string", "Digest of the container image."),
        Column("cpus", "int64", "Processor limit; null if there was none.", "cores"),
        Column("memory_bytes", "int64", "Memory limit; null if there was none.", "bytes"),
        Column("disk_bytes", "int64", "Disk limit; null if there was none.", "bytes"),
        Column("gpus", "int64", "GPUs that the agent could use; null if the definition does not say."),
        Column("validation_calls", "int64", "Requests to the validation service."),
        Column("gateway_requests", "int64", "Requests to language models that reached a provider or tried to."),
        Column("gateway_tokens", "int64", "Input and output tokens of these requests.", "tokens"),
        Column("gateway_cost_usd", "float64", "Their cost; null if the price of one is unknown.", "USD"),
        Column("tries", "int64", "How often the run was begun: above 1, machines or engines ended it before.", since=2),
        Column("host", "string", "Name of the host on which it ran in the end.", since=2),
        Column("hardware", "string", "Operating system, processor, cores and memory of the machine."),
        Column("package_version", "string", "Version of mlebench-pipeline that made the run."),
        Column("git_commit", "string", "Its git commit, or how it was installed."),
        Column("ledger_head", "string", "Hash of the last entry of the run's evidence, `ledger.jsonl`."),
        Column("ledger_entries", "int64", "Number of entries of the evidence."),
        Column("ledger_signature", "string", "HMAC of `ledger_head` by MLEBENCH_LEDGER_KEY; null without a key."),
        Column("submission_from", "string", "URL of the run whose files a regraded copy uses; null for a run itself."),
        Column("dataset_key", "string", "Content key of the dataset that the agent worked on.", since=2),
    ),
)

_GRADES = TableSchema(
    "a graded submission: a run in an edition",
    (
        Column("outcome", "string", "`valid`, `invalid`, `missing`, or `failed` if the grader itself failed."),
        Column("message", "string", "Why there is no score."),
        *_WHO,
        Column("edition", "string", "Edition whose grader and answers were used."),
        _COMPLEXITY,
        _CATEGORY,
        Column("score", "float64", "Score, rounded to 5 decimals; null if there is none or it is NaN.", "metric"),
        *_scores(
            {
                "gold_threshold": "Score that gold needs.",
                "silver_threshold": "Score that silver needs.",
                "bronze_threshold": "Score that bronze needs.",
                "median_threshold": "Median of the leaderboard.",
            }
        ),
        *_flags(
            {
                **_MEDALS,
                "submission_exists": "There is a submission.",
                "valid_submission": "The submission has a score.",
                "is_lower_better": "Lower scores are better.",
            }
        ),
        Column("created_at", "timestamp", "When the submission was graded."),
        Column("submission_path", "string", "Path or URL of the submission."),
        Column("leaderboard", "string", "Where the thresholds come from: `stored`, or a fetched leaderboard and when."),
        Column("dataset_key", "string", "Content key of the dataset with the answers.", since=2),
    ),
)

_SNAPSHOTS = TableSchema(
    "a version of a submission, kept while the agent ran, and graded",
    (
        *_WHO,
        Column("at_seconds", "float64", "Time since the start of the run.", "s"),
        Column("score", "float64", "Score, rounded to 5 decimals; null if there is none or it is NaN.", "metric"),
        *_flags({"valid_submission": "The version has a score.", **_MEDALS}),
    ),
)

_USAGE = TableSchema(
    "a request of a run to a language model that reached a provider or tried to",
    (
        _RUN_ID,
        _COMPETITION,
        _SEED,
        Column("model", "string", "The model that was asked for."),
        Column("input_tokens", "int64", "Tokens of the prompt.", "tokens"),
        Column("output_tokens", "int64", "Tokens of the answer.", "tokens"),
        Column("cost_usd", "float64", "Cost; null if the model's price is unknown.", "USD"),
        Column("latency_seconds", "float64", "Time until the answer was complete.", "s"),
        Column("started_at", "timestamp", "When the request arrived."),
        Column("status", "string", "ok, error, credentials, unreachable, timeout or cut."),
        Column("estimated", "bool", "The provider did not report tokens; they are estimated."),
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
        *_WHO,
        Column("file", "string", "Path of the file below the run's code folder."),
        Column("other_kind", "string", "`kernel` (a public notebook) or `run`."),
        Column("other", "string", "The notebook, or the other run's file."),
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
        *_WHO,
        Column("rule", "string", "The rule that may be broken."),
        Column("severity", "string", "`violation` (a person should look at it) or `notice`."),
        Column("file", "string", "Path of the file; empty if the finding is about the whole run."),
        Column("line", "int64", "Line of the file, from 1; 0 if the finding is about the whole run."),
        Column("quote", "string", "The line that the finding rests on."),
        Column("why", "string", "What is wrong with it."),
        Column("by", "string", "`static`, or the language model that found it."),
    ),
)

_KIND = Column("kind", "string", "Kind of text: description, discussion or all.")
_MODEL = Column("model", "string", "The language model that was measured.")

_FAMILIARITY = TableSchema(
    "a competition and a kind of text, measured with a language model",
    (
        _COMPETITION,
        _MODEL,
        _KIND,
        Column("texts", "int64", "Number of texts."),
        Column("tokens", "int64", "Their length.", "tokens"),
        Column("mean_probability", "float64", "Mean probability that the model gives to the texts' tokens.", "0-1"),
        Column("human_percentile", "float64", "Share of teams that the group's runs beat on average.", "%"),
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
        Column("spearman", "float64", "Spearman's coefficient.", "-1 to 1"),
        Column("spearman_low", "float64", "Lower end of its 95 % interval.", "-1 to 1"),
        Column("spearman_high", "float64", "Upper end of its 95 % interval.", "-1 to 1"),
    ),
)

_RATES = (*_MEDALS, "valid_submission", "submission_exists")

_COMPARISONS = TableSchema(
    "a competition that both of two compared groups have; the partition is named `A..B`",
    (
        _COMPETITION,
        _COMPLEXITY,
        Column("change", "string", "better, worse, mixed or same: B against A."),
        *_scores(
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

_SERIES = (_AGENT, _EDITION)
_SPLIT = Column("split", "string", "Complexity split or category; `all` is low, medium and high together.")
_RATE = Column("rate", "string", f"Which rate: {', '.join(_RATES)}.")
_BY = Column("by", "string", "What `split` names: `complexity` or `category`.")
_INTERVAL = (
    Column("ci_low", "float64", "Lower end of the 95 % interval.", "fraction"),
    Column("ci_high", "float64", "Upper end of the 95 % interval.", "fraction"),
)
_ATTEMPT = (
    Column("seed", "int64", "Number of the attempt; null for a run without a seed."),
    Column("run_id", "string", "Name of the run, for a run without a seed; else null.", since=1),
)

_SPENT = (
    Column("calls", "int64", "Number of requests."),
    Column("input_tokens", "float64", "Tokens of the prompts; null if unknown.", "tokens"),
    Column("output_tokens", "float64", "Tokens of the answers; null if unknown.", "tokens"),
    Column("cost_usd", "float64", "Cost; null if the price of a request is unknown.", "USD"),
    Column("latency_seconds", "float64", "Sum of the times until the answers.", "s"),
)

TABLES: dict[Table, TableSchema] = {
    "runs": _RUNS,
    "grades": _GRADES,
    "snapshots": _SNAPSHOTS,
    "usage": _USAGE,
    "examinations": _EXAMINATIONS,
    "plagiarism": _PLAGIARISM,
    "violations": _VIOLATIONS,
    "familiarity": _FAMILIARITY,
    "familiarity_correlation": _CORRELATION,
    "comparisons": _COMPARISONS,
    "aggregates/rates": TableSchema(
        "a series (run group, agent, edition), split and rate",
        (
            *_SERIES,
            _SPLIT,
            _RATE,
            Column("mean", "float64", "Mean of the seeds' rates; null without a counted seed.", "fraction"),
            Column("sem", "float64", "Standard error over seeds; null with fewer than two.", "fraction"),
            *_INTERVAL,
            Column("seeds", "int64", "Seeds that count."),
            Column("competitions", "int64", "Competitions that count."),
            _BY,
            Column("incomplete", "string", "How incomplete seeds were treated: `exclude` or `fail`."),
            Column("interval", "string", "`t` (Student's over seeds) or `bootstrap` (over competitions)."),
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
            _COMPETITION,
            Column("reason", "string", "`missing` (there is no grade) or `failed` (the grader failed)."),
            Column("treatment", "string", "`seed excluded` or `counted as failure`."),
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
            _COMPETITION,
            Column("k", "int64", "Number of attempts."),
            Column("attempts", "int64", "Graded attempts that the estimate rests on."),
            Column("score", "float64", "Expected best score of k attempts; null if there is none.", "metric"),
        ),
    ),
    "aggregates/competitions": TableSchema(
        "a series and competition",
        (
            *_SERIES,
            _COMPETITION,
            _COMPLEXITY,
            _CATEGORY,
            Column("attempts", "int64", "Graded attempts."),
            Column("valid", "int64", "Attempts with a score."),
            Column("medals", "int64", "Attempts with a medal."),
            *_scores({"mean_score": "Mean over attempts.", "score_sem": "Its standard error.", "best_score": "Best."}),
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
            Column("sem", "float64", "Standard error over seeds; null with fewer than two.", "fraction"),
            *_INTERVAL,
            Column("seeds", "int64", "Seeds that count."),
            Column("competitions", "int64", "Competitions that count."),
        ),
    ),
    "aggregates/usage_by_run": TableSchema(
        "a run that asked language models",
        (_RUN_ID, _COMPETITION, _SEED, Column("models", "string", "The models, separated by commas."), *_SPENT),
    ),
    "aggregates/usage": TableSchema(
        "a series whose runs asked language models",
        (
            *_SERIES,
            Column("runs", "int64", "Graded runs."),
            Column("runs_with_usage", "int64", "Those that asked a model."),
            Column("medals", "int64", "Medals won."),
            *_SPENT,
            Column("cost_per_run", "float64", "Cost of a run that asked a model.", "USD"),
            Column("tokens_per_run", "float64", "Tokens of a run that asked a model.", "tokens"),
            Column("cost_per_medal", "float64", "Cost of all runs over the medals; null without a medal.", "USD"),
            Column("tokens_per_medal", "float64", "Tokens of all runs over the medals.", "tokens"),
        ),
    ),
}
