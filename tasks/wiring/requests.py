"""Requests to the pipeline, which the command line and deployments pass down to the tasks.

They are frozen pydantic models, so that Prefect validates them as flow and task parameters, shows them in its UI, and
restores them when a flow run is submitted again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from common.errors import UserError
from common.splits import RecordedSplit
from competitions import registry
from competitions.editions import Edition
from grading.conditions import SWITCHES
from grading.medals import STORED, Leaderboard
from sandbox import backends
from sandbox.isolation import PROCESSES, Isolation
from storage.dataset import Dataset
from storage.runs.records import RunRecord
from storage.store import check_run_group, root_url


def switched_on(records: Sequence[RunRecord]) -> dict[str, str]:
    """The switches that are on in any of these runs, and how a reader is told: if not in all, with the number."""
    found = {}
    for name in SWITCHES:
        values = [value for record in records if (value := getattr(record, name))]
        shares = " or ".join(sorted({f"{100 * value:g} %" for value in values if value is not True}))
        words = f"{name} on {shares} of the test rows" if shares else name
        if values:
            found[name] = words if len(values) == len(records) else f"{words} ({len(values)} of {len(records)} runs)"
    return found


class _Request(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RunRequest(_Request):
    """A run group: which agent runs, how often, and under which conditions."""

    agent: str = Field(description="Name of an agent, or the path of its folder.")
    run_group: str = Field(description="Name of this set of runs.")
    store: str = Field(description="Root URL of the store.")
    seeds: int = Field(default=1, ge=1, description="Runs of each competition, with the seeds 0, 1, ...")
    only_seeds: tuple[int, ...] = Field(default=(), description="Only these seeds. Default: the seeds 0, 1, ...")
    retry: tuple[str, ...] = Field(default=(), description="Make finished runs with these statuses again.")
    edition: Edition = Field(default="v1", description="Edition of the datasets and graders.")
    time_limit_seconds: float | None = Field(
        default=None, gt=0, description="Wall-clock limit of a run. Default: the agent's own."
    )
    max_memory: int | None = Field(default=None, gt=0, description="Most bytes of memory of a run.")
    max_cpus: int | None = Field(default=None, gt=0, description="Most CPU cores of a run.")
    max_disk: int | None = Field(default=None, gt=0, description="Most bytes on disk of a run.")
    isolation: Isolation = Field(default=PROCESSES, description="Where agents run, and what they can reach.")
    obfuscated: bool = Field(default=False, description="Do not tell agents which competition they work on.")
    scorer: bool = Field(
        default=False, description="Let agents compute the competition's metric on predictions and truth of their own."
    )
    feedback: float | None = Field(
        default=None, gt=0, lt=1, description="Share of the test units on which agents can ask for scores."
    )
    feedback_calls: int = Field(default=5, ge=1, description="Public scores that a run can ask for within 24 hours.")
    feedback_required: bool = Field(
        default=False, description="Do not run competitions whose test set cannot be divided, rather than without it."
    )
    overwrite: bool = Field(
        default=False, description="Replace runs of the group that were made under other conditions."
    )
    checkpoint_every: float | None = Field(
        default=None,
        ge=0,
        description="Seconds between checkpoints of agents that can resume; 0: none. Default: theirs.",
    )
    examine: bool = Field(default=False, description="Examine the runs for plagiarism and broken rules.")
    split: RecordedSplit | None = Field(default=None, description="The split of one's own that the runs are for.")

    _store = field_validator("store")(root_url)
    _run_group = field_validator("run_group")(check_run_group)

    @property
    def switches(self) -> dict[str, Any]:
        """The conditions that are switched on, with their values. They are part of the keys of runs."""
        found = {name: value for name in SWITCHES if (value := getattr(self, name))}
        return found | ({"feedback_calls": self.feedback_calls} if self.feedback else {})

    @property
    def seed_numbers(self) -> list[int]:
        """The seeds of the runs of each competition."""
        return sorted(set(self.only_seeds)) or list(range(self.seeds))

    def require_hidden_answers(self, competition_ids: Iterable[str]) -> None:
        """Check that agents cannot look up the answers of these competitions, as far as the edition promises it.

        Raises `UserError` if containers that reach the internet are to attempt a competition in edition v2 whose known
        issues need agents without network.
        """
        if self.edition == "v1" or backends.policy(self.isolation) != "open":
            return
        facts = [registry.get(name).facts for name in competition_ids]
        public = [
            competition.id for competition in facts if any(issue.needs for issue in competition.issues(self.edition))
        ]
        if public:
            raise UserError(
                f"the answers of {', '.join(public)} are public on the web, but edition {self.edition} is to give "
                "none away: use --network gateway or allowlist, leave these competitions out (--exclude leaky), or use "
                "--edition v1"
            )


class Attempt(_Request):
    """One run of a group: one competition with one seed."""

    request: RunRequest
    competition_id: str
    seed: int
    key: str = Field(description="Content key of the run; see `tasks.wiring.attempts.run_key`.")
    dataset_key: str | None = Field(default=None, description="Content key of the dataset that the agent works on.")
    replaces: str | None = Field(default=None, description="Time of the end of the finished run that is made again.")

    @property
    def dataset(self) -> Dataset:
        """The dataset that the agent works on."""
        return Dataset(self.request.edition, self.competition_id, self.dataset_key)

    @property
    def name(self) -> str:
        """The name of the run on boards and in tables of outcomes."""
        return run_name(self.competition_id, self.seed)


class GradeRequest(_Request):
    """The grading of one run."""

    store: str
    run_group: str
    competition_id: str
    seed: int
    edition: Edition
    key: str = Field(description="Content key of the grade; see `tasks.wiring.grades.grade_key`.")
    leaderboard: Leaderboard = STORED

    @property
    def name(self) -> str:
        """The name of the run that is graded."""
        return run_name(self.competition_id, self.seed)


def run_name(competition_id: str, seed: int) -> str:
    """The name of a run on boards, in logs and in tables of outcomes.

    >>> run_name("digits", 2)
    'digits seed 2'
    """
    return f"{competition_id} seed {seed}"
