"""The attempts of a request: which are finished, which may replace a run, and their entries in the group's manifest.

A run of a group that was made under other conditions is not overwritten unless the request says so. This module does
not import Prefect, which takes long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from common.errors import UserError
from common.settings import get_settings
from common.units import duration, size
from grading.conditions import SWITCHES
from sandbox import backends
from storage.dataset import Dataset
from storage.datasets.prepared import committed_key
from storage.keys import content_key
from storage.runs.evidence.group_manifest import append, head_of_run
from storage.runs.folders import RunFolder
from storage.runs.records import RunRecord
from storage.store import Store
from tasks.wiring.context import RunContext
from tasks.wiring.requests import Attempt, RunRequest

_WITHOUT_RESULT = ("lost", "cancelled")
"""Statuses of runs that are made again."""


def attempts_of(context: RunContext, competition_id: str) -> list[Attempt]:
    """The attempts at a competition, one per seed. Raises `UserError` as `RunRequest.require_hidden_answers`."""
    request, store = context.request, context.store
    request.require_hidden_answers([competition_id])
    dataset_key = committed_key(store, Dataset(request.edition, competition_id))
    attempts = [
        Attempt(
            request=request,
            competition_id=competition_id,
            seed=seed,
            # Without a prepared dataset the key does not matter: the run then fails because of that.
            key=run_key(context, seed, dataset_key or ""),
            dataset_key=dataset_key,
        )
        for seed in request.seed_numbers
    ]
    return [_again(store, attempt) for attempt in attempts] if request.retry else attempts


def _again(store: Store, attempt: Attempt) -> Attempt:
    """The attempt, which replaces the finished run if that ended with one of the statuses that are tried again."""
    record = finished_run(store, attempt)
    if record is None or record.status not in attempt.request.retry:
        return attempt
    return attempt.model_copy(update={"replaces": str(record.finished_at)})


def run_key(context: RunContext, seed: int, dataset_key: str) -> str:
    """The content key of a run: the agent, its limits, the seed, the dataset, and what the agent can reach.

    The run group is part of it, because another group is another attempt.
    """
    request = context.request
    # The caps of a machine are only in the record of the run, and not part of its key.
    limits = context.requested_limits.as_dict()
    del limits["free_bytes"]
    reach = backends.conditions(request.isolation) | request.switches
    return content_key(
        context.agent.fingerprint(),
        limits,
        seed,
        request.edition,
        dataset_key,
        request.run_group,
        *([reach] if reach else []),
    )


def attempt_folder(store: Store, attempt: Attempt) -> RunFolder:
    """The folder in the store with the files of an attempt."""
    return RunFolder(store, attempt.request.run_group, attempt.competition_id, attempt.seed)


def finished_run(store: Store, attempt: Attempt) -> RunRecord | None:
    """The record of the attempt if it is finished under the same key, otherwise None.

    A run that was lost or cancelled, or that the attempt replaces, does not count: it is made again.
    """
    record = attempt_folder(store, attempt).read_run()
    if record is None or record.key != attempt.key or record.status in _WITHOUT_RESULT:
        return None
    return None if attempt.replaces is not None and str(record.finished_at) == attempt.replaces else record


def require_replaceable(context: RunContext, attempt: Attempt) -> None:
    """Raise `UserError` if the attempt would replace a result of other conditions, unless the request overwrites.

    Runs that were lost or cancelled have no result, and are made again.
    """
    record = _other_result(context.store, attempt)
    if record is not None and not context.request.overwrite:
        raise UserError(
            f"run group {context.request.run_group} has {attempt.name} already, made under other conditions: "
            f"{'; '.join(differences(context, record, attempt))}. Choose another --run-group, or replace the run with "
            "--overwrite"
        )


def note_overwriting(context: RunContext, attempt: Attempt) -> None:
    """Note in the group's manifest that a result of other conditions is being replaced, with its hash."""
    record = _other_result(context.store, attempt)
    if record is None:
        return
    facts: dict[str, Any] = {"head": head_of_run(record.model_dump(mode="json")), "status": record.status}
    facts |= {"run_key": record.key, "differs": differences(context, record, attempt)}
    run = f"{attempt.competition_id}/{attempt.seed}"
    note_in_manifest(context.store, context.request.run_group, "overwritten", run=run, **facts)


def _other_result(store: Store, attempt: Attempt) -> RunRecord | None:
    record = attempt_folder(store, attempt).read_run()
    return None if record is None or record.key == attempt.key or record.status in _WITHOUT_RESULT else record


def differences(context: RunContext, record: RunRecord, attempt: Attempt) -> list[str]:
    """How the conditions of an attempt differ from those of a recorded run: texts with the value then and now."""
    request, agent = context.request, context.agent
    limits, machine_limits = context.requested_limits, context.limits
    seconds = record.time_limit_seconds
    # Limits that the machine has set, because none was requested or it has less, are no conditions of the run.
    by_machine = {
        name
        for name, requested, available in (
            ("CPUs", limits.cpus, machine_limits.cpus),
            ("memory", limits.memory_bytes, machine_limits.memory_bytes),
            ("disk", limits.disk_bytes, machine_limits.disk_bytes),
        )
        if requested != available
    }
    conditions = backends.conditions(request.isolation)
    now = {
        "agent": agent.full_name,
        "time limit": duration(limits.time_limit_seconds),
        "CPUs": limits.cpus,
        "memory": _size(limits.memory_bytes),
        "disk": _size(limits.disk_bytes),
        "GPUs": limits.gpus,
        "edition": request.edition,
        "backend": request.isolation.backend,
        "network": conditions.get("network", "not restricted"),
        "runtime": conditions.get("runtime", "none"),
        **{name: _switch(getattr(request, name)) for name in SWITCHES},
        "public scores a day": request.feedback_calls,
    }
    was = {
        "agent": record.agent,
        "time limit": duration(limits.time_limit_seconds if seconds is None else seconds),
        "CPUs": record.cpus,
        "memory": _size(record.memory_bytes),
        "disk": _size(record.disk_bytes),
        "GPUs": record.gpus,
        "edition": record.edition,
        "backend": record.backend,
        "network": record.network or "not restricted",
        "runtime": record.runtime or "none",
        **{name: _switch(getattr(record, name)) for name in SWITCHES},
        "public scores a day": record.feedback_calls_per_day,
    }
    if None in (record.feedback, request.feedback):  # that it was switched on or off says enough
        del now["public scores a day"]
    if record.feedback_missing:  # it was requested; with which share is not known
        del now["feedback"]
    differing = [name for name in now if was[name] != now[name] and name not in by_machine]
    texts = [f"{name} was {was[name]}, is now {now[name]}" for name in differing]
    if record.feedback_missing and request.feedback is None:
        texts.append("feedback was requested, is now off")
    if record.agent == agent.full_name and record.code_fingerprint not in (None, agent.fingerprint()):
        texts.append("the files of the agent have changed")
    if record.dataset_key != attempt.dataset_key and None not in (record.dataset_key, attempt.dataset_key):
        texts.append("the dataset was prepared again and is another one")
    if record.submission_from:
        texts.append(f"the run is a copy of {record.submission_from}")
    return texts or ["its limits, or how its key is computed"]


def _switch(value: bool | float | None) -> str:
    """A condition of `SWITCHES`, in words."""
    return "off" if not value else "on" if value is True else f"{100 * value:g} %"


def _size(count: int | None) -> str | None:
    return None if count is None else size(count)


def note_in_manifest(store: Store, run_group: str, kind: str, **facts: Any) -> None:
    """Append an entry; see `storage.runs.evidence.group_manifest`. Raises `UserError` if the key cannot sign."""
    append(store, run_group, get_settings().ledger_key.get_secret_value(), kind, **facts)


def note_plan(store: Store, request: RunRequest, competition_ids: Sequence[str]) -> None:
    """Note which runs a request plans, so that runs that are dropped later are noticed."""
    plan: dict[str, Any] = {"competitions": sorted(competition_ids), "seeds": request.seeds, "agent": request.agent}
    if request.only_seeds:
        plan |= {"seeds": 0, "seed_numbers": request.seed_numbers}
    note_in_manifest(store, request.run_group, "planned", **plan, edition=request.edition)
