"""Attempts in a Prefect work pool: each is a flow run that a worker on any host takes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, cast
from uuid import UUID

from prefect import get_client, runtime
from prefect.deployments import run_deployment

from common import progress
from common.errors import Cancelled
from flows.attempt import attempt_name
from flows.fleet import resubmission
from flows.fleet.hosts import online
from flows.fleet.queues import Priority, deployment_name, label_for, queue_name
from flows.fleet.runs import SERVER_ERRORS, explanation, host_of, shown_state
from flows.grading import Work, outcomes_of, submit_grade
from flows.watching.naming import agent_name
from flows.watching.outcome import Outcome
from sandbox.host.placement import unplaceable
from storage.keys import content_key
from tasks.wiring import job
from tasks.wiring.attempts import finished_run
from tasks.wiring.context import RunContext
from tasks.wiring.grades import finished_grade, grade_request
from tasks.wiring.host import need_of
from tasks.wiring.requests import Attempt, RunRequest

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun

POLL_SECONDS = 2.0
"""Interval between two requests for the states of all flow runs, one for every 200 of them."""
HOSTS_SECONDS = 60.0
"""Interval between two checks whether any host could take what waits."""
_PAGE_RUNS = 200


@dataclass
class _Submitted:
    attempt: Attempt
    run: FlowRun


class PoolAttempts:
    """Submits attempts to a registered work pool and watches them. Use it in a `with` statement.

    The flow runs do not depend on this process: if it ends, they go on, and another one finds them.
    """

    def __init__(self, pool: str, context: RunContext, priority: Priority = "normal") -> None:
        self._pool, self._context, self._request = pool, context, context.request
        self._label = label_for(context.stated_limits)
        self._queue = queue_name(self._label, priority)
        self._work: dict[str, Work] = {}
        self._open: dict[UUID, _Submitted] = {}
        self._polled_at = 0.0
        self._hosts_checked_at = float("-inf")
        self._unplaceable: str | None = None
        """Why no host can take the attempts that wait."""

    def __enter__(self) -> Self:
        self._own = runtime.flow_run.id
        if self._own is not None:
            with contextlib.suppress(Exception), get_client(sync_client=True) as client:  # for boards only
                tags = {*client.read_flow_run(UUID(self._own)).tags, *group_tags(self._request)}
                client.update_flow_run(UUID(self._own), tags=sorted(tags))
        return self

    def __exit__(self, *error: object) -> None: ...

    def add(self, attempt: Attempt) -> None:
        """Submit an attempt, unless it is made or submitted; only grade it if the current grader has not."""
        if finished_run(self._context.store, attempt) is not None:
            self._work[attempt.name] = submit_grade(self._context.store, grade_request(attempt))
            return
        latest, tries = tries_of(attempt)
        if latest is None or (latest.state and latest.state.is_final()):
            latest, tries = self._submit(attempt, tries + 1), tries + 1
        self._open[latest.id] = _Submitted(attempt, latest)
        progress.report(attempt.name, "queued", f"in work pool {self._pool}")

    def poll(self) -> None:
        """Report what the flow runs do, and take the outcomes of those that have ended. Does nothing if called often.

        An attempt whose flow run has crashed is submitted again.

        Raises:
            Cancelled: the group was cancelled.
            HandedOver: the job of this process is about to end.
        """
        if job.is_leaving():
            raise job.HandedOver("the job of this process ends: run the group again to watch it")
        now = time.monotonic()
        if now - self._polled_at < POLL_SECONDS:
            return
        self._polled_at = now
        try:
            runs = read_runs([*self._open, *([UUID(self._own)] if self._own else [])])
        except SERVER_ERRORS:
            for submitted in self._open.values():
                progress.report(
                    submitted.attempt.name, "unknown", "the Prefect server does not answer; the agent goes on"
                )
            return
        self._check_hosts(now)
        for run in runs:
            if str(run.id) == self._own:
                if run.state and (run.state.is_cancelling() or run.state.is_cancelled()):
                    raise Cancelled(f"run group {self._request.run_group} was cancelled; run it again to continue")
            else:
                self._update(run, now)

    def outcomes(self) -> dict[str, Outcome]:
        """Wait for all attempts; returns their outcomes by name."""
        while self._open:
            self.poll()
            time.sleep(0.2)
        return outcomes_of(self._work)

    def _update(self, run: FlowRun, now: float) -> None:
        submitted = self._open[run.id]
        name, state = submitted.attempt.name, run.state
        assert state is not None
        if not state.is_final():
            host = host_of(run)
            if state.is_scheduled() and self._unplaceable:
                progress.report(name, "unplaceable", self._unplaceable)
            else:
                progress.report(name, shown_state(state), f"on {host}" if host and state.is_running() else "")
            return
        if state.is_crashed():
            if not resubmission.is_certainly_dead(run):
                progress.report(name, "crashed", explanation(state))
                return
            follower = resubmission.resubmit(run)
            if follower is not None:
                del self._open[run.id]
                self._open[follower.id] = _Submitted(submitted.attempt, follower)
                progress.report(name, "queued", f"again: {explanation(state)}")
                return
        del self._open[run.id]
        outcome = self._outcome(submitted.attempt, run)
        self._work[name] = outcome
        progress.report(name, outcome.result, outcome.message)

    def _check_hosts(self, now: float) -> None:
        """Find out whether a host that is online could ever take what waits."""
        if now - self._hosts_checked_at < HOSTS_SECONDS or not self._open:
            return
        self._hosts_checked_at = now
        need = need_of(self._context)
        label = frozenset({self._label})
        with contextlib.suppress(*SERVER_ERRORS), get_client(sync_client=True) as client:
            self._unplaceable = unplaceable(online(client, self._pool), replace(need, labels=label))

    def _submit(self, attempt: Attempt, number: int) -> FlowRun:
        flow_run = run_deployment(
            name=deployment_name(self._pool),
            parameters={"attempt": attempt.model_dump(mode="json")},
            flow_run_name=attempt_name(attempt),
            tags=attempt_tags(attempt),
            idempotency_key=resubmission.idempotency_key(f"run:{_identity(attempt)}", number),
            work_queue_name=self._queue,
            timeout=0,
        )
        return cast("FlowRun", flow_run)

    def _outcome(self, attempt: Attempt, run: FlowRun) -> Outcome:
        state = run.state
        assert state is not None
        if state.is_cancelled():
            return Outcome(attempt.name, "cancelled")
        if not state.is_completed():
            return Outcome(attempt.name, "failed", explanation(state))
        request = grade_request(attempt)
        if finished_grade(self._context.store, request) is not None:
            return Outcome(attempt.name, "done")
        if finished_run(self._context.store, attempt) is None:
            host = f"host {host_of(run) or 'unknown'}"
            return Outcome(attempt.name, "failed", f"{host} stored nothing in {request.store} as seen from here")
        return Outcome(attempt.name, "failed", "grading failed because of a bug; see the flow run's log")


def group_tags(request: RunRequest) -> list[str]:
    """The tags of all flow runs of a group."""
    return ["mlebench", group_tag(request.run_group)]


def group_tag(run_group: str) -> str:
    """The tag by which the flow runs of a group are found."""
    return f"group:{run_group}"


def attempt_tags(attempt: Attempt) -> list[str]:
    """The tags of the flow runs of an attempt: group, competition and agent, and the identity of its run."""
    request = attempt.request
    subject_tags = [f"competition:{attempt.competition_id}", f"agent:{agent_name(request.agent)}"]
    return [*group_tags(request), *subject_tags, f"run:{_identity(attempt)}"]


def _identity(attempt: Attempt) -> str:
    """Identifies a run among those of all stores: two stores may have a group of the same name."""
    return content_key(attempt.request.store, attempt.key, attempt.competition_id)


def tries_of(attempt: Attempt) -> tuple[FlowRun | None, int]:
    """The latest flow run of an attempt, if there is one, and how many there are."""
    runs = resubmission.runs_tagged(f"run:{_identity(attempt)}")
    return (runs[0] if runs else None), len(runs)


def read_runs(ids: Sequence[UUID]) -> list[FlowRun]:
    """Flow runs by id, in pages."""
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

    runs: list[FlowRun] = []
    with get_client(sync_client=True) as client:
        for start in range(0, len(ids), _PAGE_RUNS):
            run_filter = FlowRunFilter(id=FlowRunFilterId(any_=list(ids[start : start + _PAGE_RUNS])))
            runs += client.read_flow_runs(flow_run_filter=run_filter, limit=_PAGE_RUNS)
    return runs
