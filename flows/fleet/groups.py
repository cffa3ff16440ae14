"""The attempts of a run group on the server: their states, and how they are cancelled."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from prefect import get_client
from prefect.states import Cancelled, Cancelling

from common.progress import Event
from flows.diagnosis.zombies import silent_since
from flows.fleet.pool import group_tag
from flows.fleet.runs import explanation, host_of, shown_state
from flows.watching.outcome import Outcome
from storage.runs.folders import RunFolder, finished_folders
from storage.store import Store
from tasks.wiring.requests import Attempt, run_name

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun

_PAGE_ITEMS = 200
_RESUBMISSION_TIME = timedelta(minutes=2)
"""Time after which a crashed flow run that was not submitted again will not be any more."""


@dataclass(frozen=True)
class GroupRuns:
    """The flow runs of a group: the latest of each attempt, and those that hand attempts out."""

    attempts: dict[str, FlowRun] = field(default_factory=dict)
    """The latest flow run of each attempt, by the name of the attempt."""
    watchers: Sequence[FlowRun] = ()

    @property
    def unfinished(self) -> list[FlowRun]:
        """The flow runs that have not ended; those that hand attempts out come first."""
        runs = [*self.watchers, *self.attempts.values()]
        return [run for run in runs if run.state is not None and not run.state.is_final()]

    @property
    def crashed(self) -> list[FlowRun]:
        """Attempts that have just crashed: other flow runs will follow them, unless they have crashed too often."""
        now = datetime.now(UTC)
        crashed_runs = [run for run in self.attempts.values() if run.state is not None and run.state.is_crashed()]
        return [run for run in crashed_runs if run.end_time is not None and now - run.end_time < _RESUBMISSION_TIME]

    def silent_watchers(self) -> dict[UUID, datetime]:
        """Flow runs that hand attempts out and whose process has died, with the time of their last sign."""
        running = [run for run in self.watchers if run.state is not None and run.state.is_running()]
        with get_client(sync_client=True) as client:
            signs = {run.id: silent_since(client, run) for run in running}
        return {run_id: sign for run_id, sign in signs.items() if sign is not None}

    @property
    def store(self) -> str | None:
        """The root of the group's store, as the flow runs name it."""
        return next((_attempt(run).request.store for run in self.attempts.values()), None)


def group_runs(run_group: str) -> GroupRuns:
    """The flow runs of a group on the server."""
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterTags
    from prefect.client.schemas.sorting import FlowRunSort

    run_filter = FlowRunFilter(tags=FlowRunFilterTags(all_=[group_tag(run_group)]))
    attempts: dict[str, FlowRun] = {}
    watchers: list[FlowRun] = []
    with get_client(sync_client=True) as client:
        for offset in range(0, 1_000_000, _PAGE_ITEMS):
            page = client.read_flow_runs(
                flow_run_filter=run_filter, sort=FlowRunSort.EXPECTED_START_TIME_ASC, limit=_PAGE_ITEMS, offset=offset
            )
            for run in page:
                if any(tag.startswith("run:") for tag in run.tags):
                    attempts[_attempt(run).name] = run  # a later try replaces an earlier one
                else:
                    watchers.append(run)
            if len(page) < _PAGE_ITEMS:
                break
    return GroupRuns(attempts, watchers)


def _attempt(run: FlowRun) -> Attempt:
    return Attempt.model_validate(run.parameters["attempt"])


def events(runs: GroupRuns, uses: dict[UUID, str], store: Store | None, run_group: str) -> Iterator[Event]:
    """The state of each attempt of a group: from the server, or from the store if the server does not know it."""
    for name, run in runs.attempts.items():
        state = run.state
        assert state is not None
        if state.is_completed():
            yield Event(name, "graded", _score(store, run_group, _attempt(run)))
        elif state.is_final():
            yield Event(name, "cancelled") if state.is_cancelled() else Event(name, "failed", explanation(state))
        else:
            location = f"on {host_of(run)}" if host_of(run) and state.is_running() else ""
            yield Event(name, shown_state(state), ", ".join(filter(None, [location, uses.get(run.id)])))
    for folder in finished_folders(store, run_group) if store else ():
        name = run_name(folder.competition_id, folder.seed)
        if name not in runs.attempts:
            yield Event(name, "graded" if folder.read_grade() else "done", _scored(folder))


def _score(store: Store | None, run_group: str, attempt: Attempt) -> str:
    if store is None:
        return ""
    return _scored(RunFolder(store, run_group, attempt.competition_id, attempt.seed))


def _scored(folder: RunFolder) -> str:
    with contextlib.suppress(Exception):  # broken records are reported elsewhere, not on a board
        if grade := folder.read_grade():
            return f"score {grade.score}" if grade.outcome == "valid" else str(grade.message or grade.outcome)
    return ""


def uses_of(runs: Sequence[FlowRun]) -> dict[UUID, str]:
    """The used time and budget of the agents of these flow runs, as texts of their progress artifacts."""
    from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId, ArtifactFilterType

    used: dict[UUID, str] = {}
    ids = [run.id for run in runs if run.state and run.state.is_running()]
    with get_client(sync_client=True) as client:
        for start in range(0, len(ids), _PAGE_ITEMS):
            artifact_filter = ArtifactFilter(
                flow_run_id=ArtifactFilterFlowRunId(any_=ids[start : start + _PAGE_ITEMS]),
                type=ArtifactFilterType(any_=["progress"]),
            )
            for artifact in client.read_artifacts(artifact_filter=artifact_filter, limit=_PAGE_ITEMS):
                if artifact.flow_run_id:
                    used[artifact.flow_run_id] = (artifact.description or "").partition(": ")[2]
    return used


def outcomes(found: Sequence[Event]) -> list[Outcome]:
    """The outcomes of attempts that have ended."""
    results: dict[str, Any] = {"graded": "done", "done": "done", "cancelled": "cancelled"}
    return [Outcome(event.row, results.get(event.state, "failed"), event.detail) for event in found]


def in_progress(run_group: str, competition_id: str | None = None, seed: int | None = None) -> list[str]:
    """The names of the attempts that `cancel` would end."""
    runs = _chosen(group_runs(run_group), competition_id, seed)
    return [name for name, run in runs.attempts.items() if run in (*runs.unfinished, *runs.crashed)]


def cancel(
    run_group: str, patience: float, competition_id: str | None = None, seed: int | None = None
) -> tuple[list[str], list[str]]:
    """Cancel the flow runs of a group, or only some attempts of it, and wait until their hosts have confirmed it.

    Returns the names of the attempts that are cancelled, and of those whose hosts have not confirmed within `patience`
    seconds.
    """
    runs_at_start = _chosen(group_runs(run_group), competition_id, seed)
    cancelled_ids = {run.id for run in runs_at_start.attempts.values() if run in runs_at_start.unfinished}
    give_up = time.monotonic() + patience
    runs = runs_at_start
    while runs.unfinished or runs.crashed:
        with get_client(sync_client=True) as client:
            # The flows that hand out come first, so that they do not submit anything after this.
            for run in runs.unfinished:
                if run.deployment_id is None:  # a command made it, which notices this; no worker would confirm it
                    client.set_flow_run_state(run.id, Cancelled(message="Cancelled by mlebench cancel."), force=True)
                elif run.state is not None and not run.state.is_cancelling():
                    client.set_flow_run_state(run.id, Cancelling(message="Cancelled by mlebench cancel."))
                    cancelled_ids.add(run.id)
            for run in runs.crashed:  # so that nobody submits them again
                client.set_flow_run_state(run.id, Cancelled(message="Cancelled by mlebench cancel."), force=True)
                cancelled_ids.add(run.id)
        if time.monotonic() > give_up:
            break
        time.sleep(0.5)
        runs = _chosen(group_runs(run_group), competition_id, seed)
    waiting = [name for name, run in runs.attempts.items() if run in runs.unfinished]
    done = [name for name, run in runs.attempts.items() if run.id in cancelled_ids and name not in waiting]
    return done, waiting


def _chosen(runs: GroupRuns, competition_id: str | None, seed: int | None) -> GroupRuns:
    """Only the attempts at a competition, or the one with a seed, without the flow runs that hand attempts out."""
    if competition_id is None:
        return runs
    attempts = {name: run for name, run in runs.attempts.items() if _is(_attempt(run), competition_id, seed)}
    return GroupRuns(attempts)


def _is(attempt: Attempt, competition_id: str, seed: int | None) -> bool:
    return attempt.competition_id == competition_id and seed in (None, attempt.seed)
