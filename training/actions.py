"""What an agent can do in an episode, and what it is told: the messages of clients and their schemas."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from training.shell import COMMAND_CHARACTERS

Kind = Literal["run", "read", "write", "check", "score", "public_score", "submit"]
_NEEDED: dict[Kind, tuple[str, ...]] = {
    "run": ("command",),
    "read": ("path",),
    "write": ("path", "content"),
    "check": (),
    "score": ("predictions", "truth"),
    "public_score": (),
    "submit": (),
}


INSTRUCTIONS = """
ACTIONS
An episode consists of actions, each with a "type" and its fields. Paths are relative to the home, such as
submission/submission.csv.
- run: "command" for bash, and "seconds" for its time limit
- read: "path" of a file, and "offset" in bytes
- write: "path" of a file and its new "content"
- check: says whether submission/submission.csv is valid
- score: paths "predictions" and "truth" of two of your files, scored with the metric of the competition
- public_score: the score of submission/submission.csv on the public part of the test set
- submit: ends the episode; submission/submission.csv counts
"""
"""What an agent is told of its actions."""


class Action(BaseModel):
    """One action. Paths are relative to the home of the agent, such as `submission/submission.csv`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Kind = Field(description="What to do.")
    command: str | None = Field(default=None, max_length=COMMAND_CHARACTERS, description="run: a command for bash.")
    seconds: float | None = Field(default=None, gt=0, description="run: its time limit, up to that of the episode.")
    path: str | None = Field(default=None, max_length=1000, description="read, write: the file.")
    content: str | None = Field(default=None, description="write: the new content of the file.")
    offset: int = Field(default=0, ge=0, description="read: byte to begin at.")
    predictions: str | None = Field(default=None, max_length=1000, description="score: a file with predictions.")
    truth: str | None = Field(default=None, max_length=1000, description="score: a file with the truth of its rows.")
    metadata: dict[str, Any] = Field(default_factory=dict, description="Ignored; clients of OpenEnv send it.")

    @field_validator("command", "path", "content", "predictions", "truth", mode="before")
    @classmethod
    def _whole_characters(cls, value: object) -> object:
        """Half a character, as of an emoji that a language model has not finished, becomes U+FFFD."""
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if isinstance(value, str) else value

    def missing(self) -> list[str]:
        """Names of the fields that an action of this type needs and that are not given."""
        return [name for name in _NEEDED[self.type] if getattr(self, name) is None]


class Left(BaseModel):
    """What is left of the limits of an episode."""

    steps: int
    seconds: float
    scores: int = Field(description="Actions of the type score.")
    public_scores: int = Field(description="Actions of the type public_score that have a score.")


class DataFile(BaseModel):
    """A file of the data."""

    path: str
    bytes: int


class Observation(BaseModel):
    """What an agent is told after an action. Fields that do not belong to the action are null."""

    message: str = Field(description="What happened, in words.")
    left: Left
    description: str | None = Field(default=None, description="reset: the description of the competition.")
    instructions: str | None = Field(default=None, description="reset: where the files are, and the limits.")
    files: list[DataFile] | None = Field(default=None, description="reset: files of the data, the first hundred.")
    stdout: str | None = None
    stderr: str | None = None
    exit_code: int | None = Field(default=None, description="run: 137 if the command was killed, as at its time limit.")
    cut: bool = Field(default=False, description="run, read: more was written, or the file has more.")
    content: str | None = Field(default=None, description="read: a part of the file.")
    valid: bool | None = Field(
        default=None, description="check, score, public_score, submit: whether the files are valid."
    )
    score: float | None = Field(default=None, description="score: by the competition's metric.")
    best: float | None = Field(default=None, description="public_score: the best one so far, rounded.")
    improved: bool | None = Field(default=None, description="public_score: whether this submission has improved it.")
    info: dict[str, Any] = Field(default_factory=dict, description="At the end: what the reward consists of.")
