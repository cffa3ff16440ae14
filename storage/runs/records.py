"""Typed records of runs, grades, snapshots, usage and examinations.

Fields are documented in `storage.schemas`, where columns have the same names. JSON files contain only the fields that
were set, so a condition that does not apply to a run is not in its file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from types import NoneType
from typing import Annotated, Any, ClassVar, Self, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from common import plain_json
from common.errors import UserError, explained
from competitions.editions import Edition
from storage.schemas import SCHEMA_VERSION, TABLES, Table
from storage.store import InvalidJson

_logger = logging.getLogger("mlebench.storage")


class RecordError(UserError):
    """A file in the store is not a valid record."""


T = TypeVar("T")
CompetitionId = Annotated[str, Field(max_length=200)]
"""Names folders, so it is no longer than what file systems have room for."""
AgentName = Annotated[str, Field(pattern=r"\S")]
"""Results are those of an agent, so it has a name."""


def if_valid(read: Callable[[], T]) -> T | None:
    """The result of `read`; None with a warning for an invalid record: for work on more than this run."""
    try:
        return read()
    except (RecordError, InvalidJson) as error:
        _logger.warning("a record is skipped: %s", error)
        return None


class Record(BaseModel):
    """Base class of records, which have a version, a JSON form, and a row of a table."""

    # Unknown fields are kept, so that reading and writing a record loses no fields of other programs.
    model_config = ConfigDict(frozen=True, extra="allow")
    table: ClassVar[Table]

    schema_version: int = SCHEMA_VERSION

    @classmethod
    def from_json(cls, content: Any, where: str = "record") -> Self:
        """Parse a record from its JSON form.

        A value that is not of its column's type is left out with a warning, where the column may be missing. Raises
        `RecordError`, naming `where`, if the record's version is newer or another field is invalid.
        """
        if not isinstance(content, dict):
            raise RecordError(f"{where} is not a JSON object")
        version = content.get("schema_version", SCHEMA_VERSION)
        if not isinstance(version, int) or version > SCHEMA_VERSION:
            raise RecordError(
                f"{where} has schema version {version}; this version of mlebench reads up to {SCHEMA_VERSION}"
            )
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            invalid = {str(detail["loc"][0]) for detail in error.errors() if detail["type"] != "missing"}
            if not invalid <= cls._optional() or len(invalid) < len({detail["loc"][0] for detail in error.errors()}):
                raise RecordError(f"{where} is not a valid record: {explained(error)}") from error
            _logger.warning("%s: left out, not of their type: %s", where, ", ".join(sorted(invalid)))
        return cls.model_validate({**content, **dict.fromkeys(invalid)})

    @classmethod
    def _optional(cls) -> set[str]:
        """The columns of its table that a record may lack."""
        fields = cls.model_fields
        names = [name for name in TABLES[cls.table].names if name in fields]
        return {name for name in names if NoneType in get_args(fields[name].annotation)}

    def to_json(self) -> dict[str, Any]:
        """The fields that were set, with times as ISO 8601 text; infinities and NaN as in `common.plain_json`."""
        fields = {"schema_version": self.schema_version, **self.model_dump(exclude_unset=True)}
        times = {name: value.isoformat() for name, value in fields.items() if isinstance(value, datetime)}
        return {name: plain_json.plain(value) for name, value in {**fields, **times}.items()}

    def to_row(self) -> dict[str, Any]:
        """The record as a row of its table, with `run_group`."""
        return {name: getattr(self, name) for name in ("run_group", *TABLES[self.table].names)}

    def replace(self, **fields: Any) -> Self:
        """A copy of the record with some fields changed."""
        return self.model_copy(update=fields)


class RunRecord(Record):
    """Conditions and outcome of a run, `run.json`. In a regraded copy, `submission_from` names the original run."""

    table: ClassVar[Table] = "runs"

    key: str = ""
    """Content key of the run: agent, limits, seed, data, and network access."""
    run_group: str
    run_id: str
    competition_id: CompetitionId
    seed: int
    agent: AgentName
    edition: Edition
    backend: str | None = None
    status: str | None = None
    message: str | None = None
    exit_code: int | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    duration_seconds: float | None = None
    submission_exists: bool = False
    time_limit_seconds: float | None = None
    code_fingerprint: str | None = None
    network: str | None = None
    runtime: str | None = None
    obfuscated: bool | None = None
    scorer: bool | None = None
    feedback: float | None = None
    feedback_calls_per_day: int | None = None
    feedback_missing: str | None = None
    feedback_id: str | None = None
    """With feedback: the column of ids by which test units are divided into public and private ones."""
    final: list[str] | None = None
    """With feedback: the agent's final choice, numbers of submissions or submission.csv; None means submission.csv."""
    image: str | None = None
    image_digest: str | None = None
    cpus: int | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    enforcement: str | None = None
    gpus: int | None = None
    knowledge_cutoff: str | None = None
    split: str | None = None
    split_version: str | None = None
    split_digest: str | None = None
    split_description: str | None = None
    check_marks: int | None = None
    validation_calls: int | None = None
    scorer_calls: int | None = None
    public_score_calls: int | None = None
    gateway_requests: int | None = None
    gateway_tokens: int | None = None
    gateway_cost_usd: float | None = None
    tries: int | None = None
    resumed: int | None = None
    host: str | None = None
    prices: str | None = None
    hardware: str | None = None
    package_version: str | None = None
    git_commit: str | None = None
    ledger_head: str | None = None
    ledger_entries: int | None = None
    ledger_signature: str | None = None
    submission_from: str | None = None
    files: str | None = None
    """Folder in the run's folder that holds its files; None if they are in the run's folder itself."""
    dataset_key: str | None = None
    """Content key of the dataset that the agent worked on."""
    edition_version: str | None = None
    signature: str | None = None
    """Of a regraded copy: signature of its record. The evidence of the original run does not cover it."""

    @field_validator("submission_from", "files")
    @classmethod
    def _is_a_path(cls, value: str | None) -> str | None:
        parts = (value or "").split("/")
        if ".." in parts or any("\0" in part or len(part.encode()) > 255 for part in parts):
            raise ValueError("no file of a store has such a path")
        return value

    def to_row(self) -> dict[str, Any]:
        """The record as a row of its table. A negative duration, of a clock that was set back, is not known."""
        row = super().to_row()
        elapsed = self.duration_seconds
        return {**row, "duration_seconds": elapsed if elapsed is not None and elapsed >= 0 else None}

    @property
    def name(self) -> str:
        """GROUP/COMPETITION/SEED."""
        return f"{self.run_group}/{self.competition_id}/{self.seed}"

    def seconds_until(self, time: object) -> float | None:
        """Seconds from the start of the run, at least 0, to a time in ISO 8601; None if either is not known."""
        try:
            moment = datetime.fromisoformat(str(time))
            return max(0.0, (moment - self.started_at).total_seconds()) if self.started_at else None
        except (ValueError, TypeError):  # TypeError: a time without a zone
            return None

    @property
    def who(self) -> dict[str, Any]:
        """The columns that identify a run in a table."""
        return {name: getattr(self, name) for name in ("run_group", "run_id", "competition_id", "seed", "agent")}


class GradeRecord(Record):
    """A run's grade: `grade.json`, or `grade-<edition>.json` for an edition other than the run's own."""

    table: ClassVar[Table] = "grades"

    key: str = ""
    """Content key of the grade: the run, the dataset, the code that grades, and the thresholds."""
    detail: str | None = None
    """Traceback if grading failed."""
    outcome: str
    message: str | None = None
    run_group: str
    run_id: str
    seed: int | None = None
    agent: AgentName
    edition: Edition
    complexity: str
    category: str
    competition_id: CompetitionId
    score: float | None = None
    gold_threshold: float | None = None
    silver_threshold: float | None = None
    bronze_threshold: float | None = None
    median_threshold: float | None = None
    dense_reward: float | None = None
    feedback: float | None = None
    public_score: float | None = None
    score_with_public_rows: float | None = None
    any_medal: bool
    gold_medal: bool
    silver_medal: bool
    bronze_medal: bool
    above_median: bool
    submission_exists: bool
    valid_submission: bool
    is_lower_better: bool
    created_at: datetime
    submission_path: str | None = None
    leaderboard: str | None = None
    dataset_key: str | None = None
    """Content key of the dataset with the answers."""
    edition_version: str | None = None
    snapshots_hash: str | None = None
    """Hash of the graded snapshots, which lie in a file of their own."""
    signature: str | None = None


class MomentRecord(Record):
    """Base class of events of a run with a time."""

    run_group: str
    run_id: str
    competition_id: CompetitionId
    seed: int
    agent: AgentName
    at_seconds: float
    """Seconds since the run started."""


class SnapshotRecord(MomentRecord):
    """A graded snapshot of a submission, or a file with a public score, which has a number (`submission`).

    `snapshots.json` is a list of them; names by edition as for `grade.json`.
    """

    table: ClassVar[Table] = "snapshots"

    score: float | None
    valid_submission: bool
    any_medal: bool
    gold_medal: bool
    silver_medal: bool
    bronze_medal: bool
    above_median: bool
    edition: Edition | None = None
    outcome: str | None = None
    leaderboard: str | None = None
    submission: int | None = None
    public_score: float | None = None
    told: float | None = None
    chosen: bool | None = None

    @classmethod
    def list_of(cls, content: Any, where: str) -> list[SnapshotRecord]:
        """The snapshots in the content of a file. Raises `RecordError`."""
        if not isinstance(content, list):
            raise RecordError(f"{where} is not a list of snapshots")
        return [cls.from_json(record, where) for record in content]


class ValidationRecord(MomentRecord):
    """A submission that the validation service checked, from its log in the run's folder."""

    table: ClassVar[Table] = "validations"

    verdict: str

    @classmethod
    def of(cls, run: RunRecord, call: Mapping[str, Any]) -> ValidationRecord | None:
        """The record of one line of a run's log; None if it is not a check, for example a refused request."""
        at, verdict = run.seconds_until(call.get("time")), str(call.get("verdict"))
        if at is None or verdict not in ("valid", "invalid", "failed"):
            return None
        return cls(**run.who, at_seconds=at, verdict=verdict)


class OwnValidationRecord(MomentRecord):
    """A candidate of an agent with the validation score that it reported itself."""

    table: ClassVar[Table] = "own_validations"

    own_score: float
    submitted: bool
    name: str | None = None


class UsageRecord(Record):
    """A request to a language model, from the gateway's log in the run's folder."""

    table: ClassVar[Table] = "usage"

    run_group: str
    run_id: str
    competition_id: CompetitionId
    seed: int
    model: str | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    latency_seconds: float | None
    started_at: datetime
    status: str
    estimated: bool | None = None

    @classmethod
    def of(cls, run: RunRecord, call: Mapping[str, Any]) -> UsageRecord:
        """The record of one line of a run's gateway log."""
        columns = {name: call[name] for name in TABLES[cls.table].names if name in call}
        return cls.from_json({**columns, **{n: v for n, v in run.who.items() if n != "agent"}}, f"{run.name}: request")


class ExaminationRecord(Record):
    """An integrity check of a run group, even if nothing was found."""

    table: ClassVar[Table] = "examinations"

    run_group: str
    stage: str
    runs: int
    flagged: int
    by: str
    at: datetime
