"""The facts of a competition in `competition.yaml`: a model that validates and documents each field."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from common import months
from competitions.editions import Edition

Complexity = Literal["low", "medium", "high", "dev", "demo", "unknown", "variant"]
Category = Literal[
    "Audio Classification",
    "Forecasting",
    "Image (Other)",
    "Image Classification",
    "Image Regression",
    "Image Segmentation",
    "Image To Image",
    "Multimodal",
    "Object Detection",
    "Sequence->Sequence",
    "Signal Processing",
    "Tabular",
    "Text (Other)",
    "Text Classification",
    "Training LLMs",
    "Video",
    "unknown",
]
Direction = Literal["higher", "lower"]
# Properties of a competition that `mlebench check` reports as mistakes unless competition.yaml declares them:
# rows-by-position   the score depends on the order of the rows, not only on their ids
# sample-scores-nan  the sample submission is valid, but its score is NaN
# gold-not-optimal   the gold submission scores worse than the sample submission or than the gold threshold
Oddity = Literal["rows-by-position", "sample-scores-nan", "gold-not-optimal"]
# What a known issue means for scores, worst first:
# labels    gives answers away, wholly or in part
# metric    the score can be raised without better predictions, or a submission that is not valid is accepted
# noise     scores are higher, lower or less certain than they should be, for everybody alike
# cosmetic  scores do not change
Severity = Literal["labels", "metric", "noise", "cosmetic"]
Md5 = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]

ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9-]*$"
OTHER_COLUMNS = "*"
"""The name that stands for columns which depend on the data, such as one for each class."""
# An archive of a download may expand to 64 times the size of the published download plus a GiB. Real tables and texts
# expand three to twenty times, also as 7z, and pictures hardly; Deflate can expand 1,032 times. The GiB is for small
# downloads, of which a single table of zeros can be the largest part. The size in the facts is approximate, but the
# margin is far wider than its error.
_MAX_EXPANSION, _EXTRA_BYTES = 64, 1 << 30
PERCENTILE_POINTS = 21  # top_0% (best), top_5%, ... top_100% (last)


class _Facts(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Metric(_Facts):
    """The metric, and whether higher or lower scores are better."""

    name: str = Field(description="The metric in words, e.g. 'area under the ROC curve'.")
    direction: Direction = Field(description="'higher' if larger scores are better, else 'lower'.")


class Leaderboard(_Facts):
    """Scores that earn medals, taken from the private leaderboard."""

    teams: int = Field(gt=0, description="Number of ranked teams.")
    gold: float = Field(description="Worst score that still earns gold; ties earn it too.")
    silver: float = Field(description="Worst score that still earns silver.")
    bronze: float = Field(description="Worst score that still earns bronze.")
    median: float = Field(description="Score of the median team; 'above median' is strictly better than it.")
    human: bool = Field(default=True, description="False when the leaderboard is not one of human teams.")
    sample: float | None = Field(
        default=None, description="Score of Kaggle's sample submission on the private leaderboard, where it is known."
    )
    percentiles: list[float] | None = Field(
        default=None, description="Scores at top 0 %, 5 %, ... 100 % of the teams, best first; null where unknown."
    )
    note: str | None = Field(default=None, description="Where an unusual leaderboard comes from.")

    @field_validator("percentiles")
    @classmethod
    def _complete(cls, values: list[float] | None) -> list[float] | None:
        if values is not None and len(values) != PERCENTILE_POINTS:
            raise ValueError(f"expected {PERCENTILE_POINTS} values, top 0 % to top 100 % in steps of 5")
        return values


class Files(_Facts):
    """The prepared files that have a role, relative to the prepared directory."""

    answers: str = Field(description="What submissions are graded against; below private/.")
    sample_submission: str = Field(description="A valid submission in the right format.")
    gold_submission: str = Field(description="The submission with the right answers; below private/.")
    gold_columns: dict[str, str] = Field(
        default_factory=dict,
        description="Columns of the sample submission that have another name in the gold submission, and that name.",
    )

    @field_validator("answers", "gold_submission")
    @classmethod
    def _private(cls, path: str) -> str:
        if PurePosixPath(path).parts[:1] != ("private",):
            raise ValueError("must be below private/")
        return path


class Checksums(_Facts):
    """MD5s of the real files in edition v1. Downloads and prepared datasets are verified against them."""

    download: Md5 | None = Field(default=None, description="MD5 of the archive as Kaggle serves it.")
    prepared: dict[str, Md5] = Field(
        default_factory=dict,
        description="MD5 by path, e.g. public/train.csv. Parquet is absent: its bytes depend on the writer's version.",
    )


class KnownIssue(_Facts):
    """A flaw of the published benchmark. Edition v1 keeps it; v2 may fix it."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$", description="Short name, unique within the competition.")
    severity: Severity = Field(
        default="noise", description="What it means for scores: labels, metric, noise, cosmetic."
    )
    needs: Literal["no-network"] | None = Field(
        default=None,
        description="What keeps agents from using it, where no edition can: 'no-network' if the answers can be looked "
        "up on the web.",
    )
    affects: list[Literal["prepare", "grade", "description"]] = Field(min_length=1, description="Parts concerned.")
    about: str = Field(description="What is wrong, and how it changes scores.")
    leaks: list[str] = Field(
        default_factory=list,
        description="Columns or files that reveal answers, as code that uses them would name them.",
    )
    v1: Literal["kept"] = Field(default="kept", description="Edition v1 always keeps it.")
    v2: Literal["fixed", "kept"] = Field(description="Whether edition v2 fixes it.")

    def open_in(self, edition: Edition) -> bool:
        """Whether the edition has this issue."""
        return edition == "v1" or self.v2 == "kept"


class SubmittedColumn(_Facts):
    """What edition v2 requires of a column of submissions."""

    values: Literal["id", "number", "whole number", "class", "text", "format", "any"] = Field(
        description="'id': identifies rows; 'number': finite; 'whole number', 'class': one of those of the training "
        "data; 'text': whatever it is; 'format': text as the description says; 'any': not read."
    )
    low: float | None = Field(default=None, description="The smallest number that is valid.")
    high: float | None = Field(default=None, description="The largest number that is valid.")
    empty: bool = Field(default=False, description="Whether cells of text may be empty.")
    sum: float | None = Field(default=None, description="What the numbers of a row must sum to.")

    @property
    def numeric(self) -> bool:
        """Whether its cells are plain numbers."""
        return self.values in ("number", "whole number")


class TruthColumn(_Facts):
    """What a column holds in a truth of the agent's own, which `score.sh` takes."""

    values: Literal["id", "0 or 1", "one", "number", "whole number", "class", "text", "format", "cell", "not read"] = (
        Field(
            description="As for submissions; also '0 or 1', 'one': 1 in the column of the right class and 0 in others, "
            "'cell': not known, 'not read': no such column."
        )
    )
    about: str = Field(default="", description="What it holds, in words for the agent; by default, words for `values`.")
    examples: list[str | int | float] = Field(default_factory=list, description="Invented cells, one for each row.")
    low: float | None = Field(default=None, description="The smallest number that is valid.")
    high: float | None = Field(default=None, description="The largest number that is valid.")
    empty: bool = Field(default=False, description="Whether cells may be empty.")


class TruthLines(_Facts):
    """A truth of the agent's own that is no table, because grade.py reads the answers with a function of its own."""

    about: str = Field(description="What the file holds, in words for the agent.")
    example: str = Field(description="Invented content of such a file.")


class Comparability(_Facts):
    """Whether scores of edition v2 can be compared with the medal thresholds as well as those of v1."""

    verdict: Literal["fully", "roughly", "not"] = Field(
        description="'fully': as well as v1, or better; 'roughly': with another test set or stricter split; 'not'."
    )
    reason: str = Field(description="What v2 does to the size and the difficulty of the test set, or to the metric.")


class Availability(_Facts):
    """Why not everybody can download a competition. It is tried nevertheless: the account may have joined before."""

    reason: str = Field(description="Why, in words that fit behind the id, such as 'Kaggle lets no new accounts join'.")
    as_of: str = Field(pattern=months.PATTERN, description="Month in which that was so, YYYY-MM.")
    source: str = Field(description="Who found it, and where it can be read.")

    def __str__(self) -> str:
        """The reason, and when it was so."""
        return f"{self.reason} (as of {self.as_of})"


class Resampling(_Facts):
    """What is drawn to see how a score depends on the choice of test rows, where it is not single rows."""

    id: str | None = Field(
        default=None, description="Column of ids in answers and submissions; by default the one they share."
    )
    column: str | None = Field(
        default=None, description="Column of the answers that names the unit: a patient, a play."
    )
    pattern: str | None = Field(
        default=None, description="Regular expression; its group finds the unit in that column, by default in the ids."
    )
    unknown: str | None = Field(
        default=None, description="Why the units cannot be told; then there is no standard error, because it would lie."
    )


class CompetitionFacts(_Facts):
    """The content of a `competition.yaml`."""

    id: str = Field(pattern=ID_PATTERN, description="Kaggle's slug; also the folder's name.")
    name: str = Field(description="Title.")
    category: Category = Field(description="Kind of problem.")
    complexity: Complexity = Field(
        description="Complexity split of the paper, or 'dev' / 'demo'; 'unknown': none; 'variant': of variants."
    )
    ended: str | None = Field(
        default=None,
        pattern=months.PATTERN,
        description="Month of Kaggle's deadline, or of the end of a second stage, YYYY-MM; null if it never ends.",
    )
    splits: list[Literal["systemcard"]] = Field(default_factory=list, description="Further lists that contain it.")
    source: Literal["kaggle", "bundled"] = Field(default="kaggle", description="Where its download comes from.")
    size_bytes: int | None = Field(default=None, description="Approximate size of the download; null where unknown.")
    availability: Availability | None = Field(
        default=None, description="Why not everybody can download it; by default, everybody can."
    )
    metric: Metric = Field(description="Metric and direction.")
    holdout: str = Field(description="How the new test set is drawn, in words.")
    leaderboard: Leaderboard = Field(description="Medal thresholds.")
    public_answers: list[str] = Field(
        default_factory=list,
        description="Columns of the answers that are public besides the ids, on which validity may depend.",
    )
    files: Files = Field(description="Prepared files that have a role.")
    submission: dict[str, SubmittedColumn] = Field(
        default_factory=dict,
        description="What edition v2 requires of each column; '*' stands for the other columns of the answers.",
    )
    truth: dict[str, TruthColumn] = Field(
        default_factory=dict,
        description="Columns of a truth of the agent's own, for `--scorer`, that differ from those of submissions.",
    )
    truth_lines: TruthLines | None = Field(default=None, description="Such a truth if it is no table.")
    resampling: Resampling | None = Field(
        default=None, description="Units of the test set whose rows belong together; by default each id is one."
    )
    checksums: Checksums = Field(default_factory=Checksums, description="MD5s of the real files.")
    params: dict[str, Any] = Field(
        default_factory=dict,
        description="Absolute counts, dates and names in prepare.py that a miniature must override.",
    )
    known_issues: list[KnownIssue] = Field(default_factory=list, description="Flaws of the published benchmark.")
    v2_comparable: Comparability | None = Field(
        default=None, description="How well scores of v2 compare with the medal thresholds; without it, fully."
    )
    oddities: list[Oddity] = Field(
        default_factory=list, description="What `mlebench check` must not report as a mistake in v1."
    )

    def issues(self, edition: Edition) -> list[KnownIssue]:
        """The known issues that the edition leaves open, worst first."""
        order = get_args(Severity)
        return sorted(
            (issue for issue in self.known_issues if issue.open_in(edition)),
            key=lambda issue: order.index(issue.severity),
        )

    def leaks(self, edition: Edition) -> list[KnownIssue]:
        """The known issues by which the edition gives answers away."""
        return [issue for issue in self.issues(edition) if issue.severity == "labels"]

    @property
    def leaky(self) -> bool:
        """Whether every edition gives answers away, at least to agents with a network."""
        return bool(self.leaks("v2"))

    @property
    def most_bytes(self) -> int | None:
        """Bytes to which an archive of the download may expand; None if the size of the download is unknown."""
        return None if self.size_bytes is None else _MAX_EXPANSION * self.size_bytes + _EXTRA_BYTES

    @property
    def lower_is_better(self) -> bool:
        """True if smaller scores are better."""
        return self.metric.direction == "lower"

    @model_validator(mode="after")
    def _consistent(self) -> CompetitionFacts:
        board = self.leaderboard
        order = [board.gold, board.silver, board.bronze, board.median]
        if order != sorted(order, reverse=not self.lower_is_better):
            raise ValueError(
                f"thresholds {order} are not ordered for a metric where {self.metric.direction} is better: change "
                "metric.direction, or state gold, silver, bronze and median from the best to the worst"
            )
        ids = [issue.id for issue in self.known_issues]
        if len(ids) != len(set(ids)):
            raise ValueError("known_issues must have unique ids")
        return self
