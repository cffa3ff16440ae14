"""Step 4: one agent attempts one competition with one seed."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from common import progress
from common.settings import get_settings
from competitions import registry
from grading.feedback.public_scores import begin_anew
from sandbox import backends
from sandbox.backend import Backend, RunHandle, RunResult, RunSpec
from sandbox.errors import BackendClosed, BackendError, RunLost
from sandbox.limits import Limits
from sandbox.secrets import resolve
from sandbox.services.run_services import RECORDS
from sandbox.supervision.control import Layout
from storage.datasets.current import require
from storage.lease import lease, run_lease
from storage.runs.checkpoints import Checkpoints
from storage.runs.live import uploaded
from storage.runs.tries import HANDED_OVER, MAX_TRIES, Tries
from storage.store import Store
from storage.uses import Continuing
from tasks.wiring import job
from tasks.wiring.attempts import (
    attempt_folder,
    finished_run,
    note_in_manifest,
    note_overwriting,
    require_replaceable,
)
from tasks.wiring.backends import backend, termination_reason
from tasks.wiring.cancelling import RunSelection, is_cancelled, require_not_cancelled, store_cancelled
from tasks.wiring.context import RunContext, open_store
from tasks.wiring.feedback import note, public_part, texts
from tasks.wiring.host import TRY_LABEL, allocated, slot_with_data
from tasks.wiring.requests import Attempt
from tasks.wiring.resuming import checkpoints_of, find_resumed
from tasks.wiring.run import ActiveRun, usage_meter
from tasks.wiring.services import run_services, scorer_texts
from tasks.wiring.storing import lost_result, store_run

_SLACK_SECONDS = 3600.0
"""Time between fetching the data and starting the agent, plus that between its end and storing its last file."""

Action = Callable[[ActiveRun], RunResult]


def run_agent(attempt: Attempt) -> str:
    """Run the agent, or continue waiting for it if it is already running; returns how it ended.

    A lease covers the run. If another process makes the same run, its result is waited for, without a slot. The run's
    record is written last: files in the run's folder do not count without it.

    Raises:
        LeaseLost: another process took over the run, because this one was stopped or could not reach the store.
        Cancelled: somebody has cancelled the run.
        HandedOver: the job of this process ends before the run can.
        UserError: the group has the run already, made under other conditions, and is not to be overwritten.
    """
    context = RunContext.of(attempt.request)

    def waiting(reason: str) -> None:
        progress.report(attempt.name, "waiting", reason)

    while True:
        record = finished_run(context.store, attempt)
        if record is not None:
            return str(record.status)
        require_replaceable(context, attempt)
        require_not_cancelled(attempt)
        waiting("")
        try:
            status = _attempt(context, attempt, _run, waiting)
        except RunLost as error:
            waiting(f"to begin anew ({error})")
            continue
        if status is not None:
            return status
        with lease(context.store, _lease_name(attempt), on_wait=waiting):
            pass  # the other process has finished the run, or has ended, so that it is to be continued


def end_agent(attempt: Attempt) -> str | None:
    """End the agent of a cancelled attempt, whose own process has ended, and store what it left; returns how it ended.

    None if the run is finished already, if another process makes it, or if there is no agent on this machine.
    """
    context = RunContext.of(attempt.request)
    workdir = work_folder(attempt, context.store)
    if not Layout(workdir).task.exists():
        return None
    runner = backend(context.request.isolation, context.settings)
    runner.stop(_running(runner, _run_id(attempt), workdir))  # before anything that may take a while, as the store may
    if finished_run(context.store, attempt) is not None:
        return None
    try:
        return _attempt(context, attempt, _end, lambda _: None)
    except RunLost:  # somebody has removed it
        return None


def cancel_run(attempt: Attempt) -> None:
    """Note that an attempt is cancelled, and tell its agent on this machine to end. Returns soon, and is thread-safe.

    The process that makes the attempt stores what the agent left.
    """
    request = attempt.request
    RunSelection(request.store, request.run_group, attempt.competition_id, attempt.seed).note()
    workdir = work_folder(attempt, open_store(request.store))
    if Layout(workdir).task.exists():
        backends.load(request.isolation.backend).request_stop(workdir, attended=False)


def remove_agent(attempt: Attempt) -> None:
    """End the agent of an attempt on this machine, and remove its files. Another process is to make the attempt."""
    backends.load(attempt.request.isolation.backend).remove(work_folder(attempt, open_store(attempt.request.store)))


def _lease_name(attempt: Attempt) -> str:
    return run_lease(attempt.request.run_group, attempt.competition_id, attempt.seed)


def _attempt(context: RunContext, attempt: Attempt, action: Action, waiting: Callable[[str], None]) -> str | None:
    """Run the agent, or end it, with its data and services; None if another process makes the run.

    Raises `RunLost` if the agent is gone without a result, and may be started again.
    """
    settings, store, isolation = context.settings, context.store, context.request.isolation
    limits = context.limits
    dataset = require(store, attempt.dataset)
    workdir = work_folder(attempt, store)
    # The agent continues when its orchestrator is killed, and may read the data where they lie.
    mounts_data = backends.load(isolation.backend).capabilities.mounts_data
    continuing = Continuing(workdir, limits.time_limit_seconds + _SLACK_SECONDS) if mounts_data else None
    with (
        slot_with_data(store, dataset, continuing, waiting) as prepared,
        lease(store, _lease_name(attempt), wait=False) as held_lease,
    ):
        if held_lease is None:
            return None
        record = finished_run(store, attempt)  # another process may have made it meanwhile
        if record is not None:
            return str(record.status)
        marks = len(registry.open_marks(attempt.competition_id))
        spec = _spec(context, attempt, limits, workdir, prepared / "public")
        runner = backend(isolation, settings)
        checkpoints = Checkpoints(attempt_folder(store, attempt))
        resumed = find_resumed(attempt, spec, runner, checkpoints)
        begun = workdir if resumed is not None or runner.find(spec) != "new" else None
        feedback = public_part(context.request, store, dataset, begun)
        public = None if isinstance(feedback, str) else feedback
        if public is not None:
            spec = replace(spec, public_scores=texts(spec.competition_id, public))
        with (
            allocated(runner, spec, waiting, running=action is _end) as allocation,
            run_services(runner, spec, store, dataset, settings, public) as services,
        ):
            secrets = resolve(
                spec.agent.name,
                spec.agent.env,
                allowed=settings.agent_secrets,
                operator=os.environ,
                provided=services.env,
            )
            spec = replace(
                spec,
                validation_url=services.validation_url,
                scorer_url=services.urls.get("scorer"),
                public_score_url=services.urls.get("public_score"),
                allowance=services.remaining if resumed else services.allowance,
                env={**secrets, **services.env},
                allocation=allocation,
            )
            own_attempt = attempt.model_copy(update={"dataset_key": dataset.key})
            tries = Tries(store, attempt_folder(store, attempt).url)
            run = ActiveRun(
                context, own_attempt, spec, runner, services, held_lease, tries, checkpoints, resumed, feedback, marks
            )
            return action(run).status


def _spec(context: RunContext, attempt: Attempt, limits: Limits, workdir: Path, data: Path) -> RunSpec:
    """The run of an attempt, without the values that are known only after its services have started."""
    request, competition = context.request, registry.get(attempt.competition_id)
    sample = competition.facts.files.sample_submission
    return RunSpec(
        run_id=_run_id(attempt),
        competition_id=competition.id,
        seed=attempt.seed,
        agent=context.agent,
        data=data,
        workdir=workdir,
        limits=limits,
        own_disk=context.settings.disk_images,
        description=competition.describe(request.edition, obfuscated=request.obfuscated),
        obfuscated=request.obfuscated,
        scorer=scorer_texts(competition, data) if request.scorer else None,
        labels={
            "group": request.run_group,
            "store": context.store.root,
            "competition": competition.id,
            "seed": str(attempt.seed),
            TRY_LABEL: uuid.uuid4().hex,
        },
        sample_submission=sample.removeprefix("public/") if sample.startswith("public/") else None,
    )


def _run_id(attempt: Attempt) -> str:
    return f"{attempt.request.run_group}-{attempt.competition_id}-{attempt.seed}"


def work_folder(attempt: Attempt, store: Store) -> Path:
    """The run's work directory. Its name is short, and the same after a restart."""
    name = f"{store.root} {attempt.request.run_group} {attempt.competition_id} {attempt.seed} {attempt.key}"
    return get_settings().scratch / "runs" / hashlib.blake2b(name.encode(), digest_size=8).hexdigest()


def _run(run: ActiveRun) -> RunResult:
    row, tries = run.attempt.name, run.tries
    handle, number = _start(run)
    how_begun = "found running" if handle.attachment == "running" else "resumed" if run.resumed else "started"
    progress.report(row, "running", f"{how_begun} on {run.context.settings.host_name}")
    progress.measured_by(row, usage_meter(run.spec, run.services))
    try:
        # A host that has lost its lease, because it was cut off, stops its agent: another host may have started one.
        log = uploaded(run.folder, handle.log, number)
        with (
            run.held.ending(lambda: run.runner.stop(handle)),
            log,
            checkpoints_of(run, handle) as checkpoint,
            job.handing_over(partial(_hand_over, run, handle, checkpoint)) as handed_over,
        ):
            result = run.runner.wait(handle, on_log=lambda line: progress.report(row, "running", line.strip()[:100]))
    except RunLost as error:
        run.held.require_held()
        lost = [each for each in tries.lose_last(str(error)) if each.lost != HANDED_OVER]
        if len(lost) < MAX_TRIES:
            raise
        result = lost_result(run.spec, lost)
    if run.held.lost:
        run.runner.discard(handle)
        run.held.require_held()
    if result.status == "cancelled" and handed_over.is_set() and not is_cancelled(run.attempt):
        tries.lose_last(HANDED_OVER)
        run.runner.discard(handle)
        raise job.HandedOver("handed over because its job ends: run the group again in another job")
    if result.status == "cancelled":
        tries.drop_last()
        run.checkpoints.remove()
        store_cancelled(run, handle, result, number)
    progress.report(row, "ended", store_run(run, handle, result, number))
    if result.status == "lost":
        raise BackendError(f"run {run.spec.run_id} was {result.message}")
    return result


def _hand_over(run: ActiveRun, handle: RunHandle, checkpoint: Callable[[], object]) -> None:
    checkpoint()
    run.runner.stop(handle)


def _end(run: ActiveRun) -> RunResult:
    handle, number = _running(run.runner, run.spec.run_id, run.spec.workdir), run.number()
    result = run.runner.wait(handle)
    run.tries.drop_last()  # making a cancelled run again is no further try
    store_run(run, handle, result, number)
    return result


def _running(runner: Backend, run_id: str, workdir: Path) -> RunHandle:
    layout = Layout(workdir.absolute())
    return RunHandle(run_id, layout.workdir, runner.name, "", "running", layout.log)


def _start(run: ActiveRun) -> tuple[RunHandle, int]:
    """Start the agent, or find it if it runs; also returns the number of the try."""
    context, attempt, runner, spec, tries = run.context, run.attempt, run.runner, run.spec, run.tries
    if runner.find(spec) != "new":
        return runner.start(spec), run.number()
    require_not_cancelled(attempt)
    job.require_time(context.least_seconds)
    note_overwriting(context, attempt)
    # Before the start, so that the store knows of every agent that runs.
    resumed = run.resumed
    resumed_at = resumed.checkpoint.seconds if resumed else None
    if resumed is None:
        begin_anew(spec.workdir / RECORDS)  # before the agent asks
        note(spec.workdir / RECORDS, run.feedback)
    number = tries.begin(spec.labels[TRY_LABEL], attempt.key, context.settings.host_name, resumed_at)
    try:
        handle = runner.start(resumed.rest_of(spec) if resumed else spec)
    except BaseException as error:
        tries.drop_last()
        if isinstance(error, BackendClosed) and (reason := termination_reason(error)) is not error:
            raise reason from error  # closed since it was given to this run
        raise
    if resumed is None:
        run.services.reset_limits()
    name = f"{attempt.competition_id}/{attempt.seed}"
    facts = {"resumed_at": resumed_at, "checkpoint": resumed.checkpoint.sha256} if resumed else {}
    note_in_manifest(context.store, context.request.run_group, "started", run=name, run_key=attempt.key, **facts)
    return handle, number
