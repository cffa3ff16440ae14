"""Attempts in this process: a task runner with as many threads as agents may run at the same time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable
from contextvars import copy_context
from typing import Any, Self

from prefect.context import FlowRunContext
from prefect.futures import PrefectConcurrentFuture, PrefectFuture
from prefect.task_engine import run_task_sync
from prefect.task_runners import ThreadPoolTaskRunner
from prefect.utilities.asyncutils import run_coro_as_sync
from prefect.utilities.engine import emit_task_run_state_change_event

from common import progress
from flows.attempt import make_attempt
from flows.grading import Work, outcomes_of, submit_grade
from flows.watching.outcome import Outcome
from tasks.steps import agent_run
from tasks.wiring.attempts import finished_run
from tasks.wiring.backends import without_agents
from tasks.wiring.context import RunContext
from tasks.wiring.grades import grade_request
from tasks.wiring.in_progress import PendingRuns
from tasks.wiring.prefect_server import served
from tasks.wiring.requests import Attempt


class AgentRunner(ThreadPoolTaskRunner[Any]):
    """Runs a bounded number of tasks at the same time. The server shows the others as pending from the beginning."""

    def submit(
        self,
        task: Any,
        parameters: dict[str, Any],
        wait_for: Iterable[PrefectFuture[Any]] | None = None,
        dependencies: Any = None,
    ) -> PrefectConcurrentFuture[Any]:
        """Announce the task run as pending, and run it as soon as a thread is free."""
        assert self._executor is not None, "the runner is not open"
        run = run_coro_as_sync(
            task.create_local_run(
                parameters=parameters, flow_run_context=FlowRunContext.get(), extra_task_inputs=dependencies
            )
        )
        assert run is not None
        if isinstance(task.task_run_name, str):  # otherwise it would have a generated name until it starts
            run.name = task.task_run_name.format(**parameters)
        emit_task_run_state_change_event(task_run=run, initial_state=None, validated_state=run.state)
        cancelled = self._cancel_events[run.id] = threading.Event()
        future = self._executor.submit(
            copy_context().run,
            run_task_sync,
            task=task,
            task_run=run,
            parameters=parameters,
            wait_for=wait_for,
            return_type="state",
            context={"cancel_event": cancelled},
        )
        return PrefectConcurrentFuture(task_run_id=run.id, wrapped_future=future)


class LocalAttempts:
    """Makes attempts in this process, `MLEBENCH_AGENTS` at the same time. Use it in a `with` statement."""

    def __init__(self, context: RunContext) -> None:
        self._store, slots = context.store, context.settings.agents
        # If the store is not on this machine, the data of the next attempts are fetched while agents run: see
        # `slot_with_data`.
        threads = slots if self._store.top.local else 2 * slots
        self._served = served()
        runner = AgentRunner if self._served else ThreadPoolTaskRunner[Any]
        self._runner = runner(max_workers=threads)
        self._work: dict[str, Work] = {}
        self._pending, self._stack = PendingRuns(), contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self._pending)
        self._stack.enter_context(progress.listening(self._pending.on_event))
        self._runner.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        with self._stack:
            self._end(*error)

    def _end(self, *error: Any) -> None:
        if error[1] is None or isinstance(error[1], Exception):
            self._runner.__exit__(*error)
            return
        # Interrupted or cancelled: the runner would wait for its agents, and start those that wait for a slot.
        with without_agents("stopped with its flow"):
            self._runner.__exit__(*error)

    def add(self, attempt: Attempt) -> None:
        """Make an attempt, unless it is made; only grade it if it is not graded by the current grader."""
        if finished_run(self._store, attempt) is not None:
            self._work[attempt.name] = submit_grade(self._store, grade_request(attempt))
            return
        progress.report(attempt.name, "queued")
        self._pending.add(attempt)
        if self._served:
            future = self._runner.submit(make_attempt, {"attempt": attempt})
            future.add_done_callback(lambda _: self._pending.remove(attempt.name))
            self._work[attempt.name] = [future]
            return
        # Nobody looks at a temporary server, so nothing is announced, and the two task runs have no common parent.
        request = grade_request(attempt)
        agent_future = self._runner.submit(agent_run, {"attempt": attempt})
        agent_future.add_done_callback(lambda _: self._pending.remove(attempt.name))
        self._work[attempt.name] = submit_grade(self._store, request, after=[agent_future])

    def outcomes(self) -> dict[str, Outcome]:
        """Wait for all attempts; returns their outcomes by name."""
        return outcomes_of(self._work)
