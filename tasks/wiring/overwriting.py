"""Runs are not overwritten unless that is asked for: a group's run that was made under other conditions stays."""

from __future__ import annotations

from typing import Any

from common.errors import UserError
from common.settings import get_settings
from common.units import duration, size
from sandbox.definitions import load_agent
from storage.runs.evidence.manifest import head_of_run
from storage.runs.records import RunRecord
from tasks.wiring.caps import caps_of, limits_of
from tasks.wiring.making import run_folder
from tasks.wiring.manifest import note_in_manifest
from tasks.wiring.requests import Attempt
from tasks.wiring.stores import open_store

_NO_RESULT = ("lost", "cancelled")


class RunDiffers(UserError):
    """The group has the run already, made under other conditions."""


def require_replaceable(attempt: Attempt) -> None:
    """Raise `RunDiffers` if the attempt would replace a result of other conditions, unless the request insists.

    Runs that were lost or cancelled have no result, and are made again.
    """
    record = _other_result(attempt)
    if record is not None and not attempt.request.overwrite:
        raise RunDiffers(
            f"run group {attempt.request.run_group} has {attempt.name} already, made under other conditions: "
            f"{'; '.join(differences(record, attempt))}. Choose another --run-group, or replace the run with "
            "--overwrite"
        )


def note_overwriting(attempt: Attempt) -> None:
    """Note in the group's manifest that a result of other conditions is being replaced, with its hash."""
    record = _other_result(attempt)
    if record is None:
        return
    request, cell = attempt.request, f"{attempt.competition_id}/{attempt.seed}"
    facts: dict[str, Any] = {"head": head_of_run(record.model_dump(mode="json")), "status": record.status}
    facts |= {"run_key": record.key, "differs": differences(record, attempt)}
    note_in_manifest(open_store(request.store), request.run_group, "overwritten", run=cell, **facts)


def _other_result(attempt: Attempt) -> RunRecord | None:
    record = run_folder(attempt).read_run()
    return None if record is None or record.key == attempt.key or record.status in _NO_RESULT else record


def differences(record: RunRecord, attempt: Attempt) -> list[str]:
    """How the conditions of an attempt differ from those of a recorded run, as texts: what it was, what it is now."""
    request = attempt.request
    agent = load_agent(request.agent, get_settings().agent_dirs)
    limits = agent.limits.override(time_limit_seconds=request.time_limit_seconds)
    limits = limits.capped(caps_of(request, limits))
    seconds = record.time_limit_seconds
    here = limits_of(agent, request, get_settings())
    # What nobody asked for, or more than this machine has, is set by the machine, and was by that of the record.
    by_machine = {
        name
        for name, asked, given in (
            ("CPUs", limits.cpus, here.cpus),
            ("memory", limits.memory_bytes, here.memory_bytes),
            ("disk", limits.disk_bytes, here.disk_bytes),
        )
        if asked != given
    }
    wanted = {
        "agent": agent.full_name,
        "time limit": duration(limits.time_limit_seconds),
        "CPUs": limits.cpus,
        "memory": _size(limits.memory_bytes),
        "disk": _size(limits.disk_bytes),
        "GPUs": limits.gpus,
        "edition": request.edition,
        "network": request.isolation.conditions().get("network", "that of the process backend"),
        "runtime": request.isolation.conditions().get("runtime", "none"),
        "obfuscated": request.obfuscated,
    }
    was = {
        "agent": record.agent,
        "time limit": duration(limits.time_limit_seconds if seconds is None else seconds),
        "CPUs": record.cpus,
        "memory": _size(record.memory_bytes),
        "disk": _size(record.disk_bytes),
        "GPUs": record.gpus,
        "edition": record.edition,
        "network": record.network or "that of the process backend",
        "runtime": record.runtime or "none",
        "obfuscated": bool(record.obfuscated),
    }
    differing = [name for name in wanted if was[name] != wanted[name] and name not in by_machine]
    found = [f"{name} was {was[name]}, is now {wanted[name]}" for name in differing]
    if record.agent == agent.full_name and record.code_fingerprint not in (None, agent.fingerprint()):
        found.append("the files of the agent have changed")
    if record.dataset_key != attempt.dataset_key and None not in (record.dataset_key, attempt.dataset_key):
        found.append("the dataset was prepared again and is another one")
    if record.submission_from:
        found.append(f"the run is a copy of {record.submission_from}")
    return found or ["its limits, or how its key is computed"]


def _size(count: int | None) -> str | None:
    return None if count is None else size(count)
