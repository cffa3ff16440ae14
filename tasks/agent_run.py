"""Step 4: one agent attempts one competition with one seed."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from prefect import task
from prefect.context import TaskRunContext

from common.progress import tell
from common.settings import get_settings
from competitions import registry
from competitions.editions import Edition
from sandbox.backend import Backend, RunHandle, RunResult, RunSpec
from sandbox.definitions import load_agent
from sandbox.errors import RunLost
from sandbox.isolation import PROCESSES, Isolation
from sandbox.limits import Limits
from sandbox.secrets import resolve
from sandbox.services.run_services import RunServices
from storage.dataset import Dataset
from storage.datasets.prepared import local_copy
from storage.keys import content_key
from storage.runs.evidence.seal import seal
from storage.runs.folders import RunFolder
from storage.runs.records import RunRecord
from storage.store import Store
from tasks.wiring.backends import backend
from tasks.wiring.conditions import run_conditions
from tasks.wiring.services import run_services
from tasks.wiring.slots import slot
from tasks.wiring.stores import local_cache

_SLACK = 3600.0  # seconds from fetching the data to the start of the agent, and from its end to the last file kept


def run_row(run_group: str, competition_id: str, seed: int) -> str:
    """How a run is named on boards and in logs."""
    return f"{competition_id} seed {seed}"


def run_key(
    agent: str,
    limits: Limits,
    seed: int,
    edition: Edition,
    prepared_key: str,
    run_group: str,
    isolation: Isolation,
    obfuscated: bool = False,
) -> str:
    """The content key of a run: agent, limits, seed, data, and what it may reach.

    The group too, for another group is another attempt.
    """
    settings = get_settings()
    fingerprint = load_agent(agent, settings.agent_dirs).fingerprint()
    reach = [each] if (each := isolation.conditions() | ({"obfuscated": True} if obfuscated else {})) else []
    return content_key(fingerprint, limits.as_dict(), seed, edition, prepared_key, run_group, *reach)


def finished_run(store: Store, run_group: str, competition_id: str, seed: int, key: str) -> RunRecord | None:
    """The record of a run that is in the store under `key`; None if it has still to be made."""
    record = RunFolder(store, run_group, competition_id, seed).read_run()
    return record if record is not None and record.key == key else None


def _cache_key(context: TaskRunContext, parameters: dict[str, Any]) -> str | None:
    store, where = (
        Store(parameters["store"]),
        [parameters[name] for name in ("run_group", "competition_id", "seed", "key")],
    )
    return f"{context.task.name}-{where[-1]}" if finished_run(store, *where) else None


def _name(parameters: dict[str, Any]) -> str:
    """The agent by its name, also where it was given as a folder."""
    agent = load_agent(parameters["agent"], get_settings().agent_dirs).full_name
    return f"run {agent} on {parameters['competition_id']} seed {parameters['seed']}"


@task(
    name="agent-run",
    task_run_name=_name,  # type: ignore[arg-type]  # its protocol asks for more than it uses
    persist_result=True,
    cache_key_fn=_cache_key,
)
def agent_run(
    competition_id: str,
    seed: int,
    run_group: str,
    agent: str,
    store: str,
    edition: Edition,
    limits: Limits,
    key: str,
    isolation: Isolation = PROCESSES,
    obfuscated: bool = False,
) -> str:
    """Run the agent, or go on waiting for it if it is already running; returns how it ended.

    The run's record is written last: what lies in the run's folder without it does not count.
    """
    place = Store(store)
    record = finished_run(place, run_group, competition_id, seed, key)
    if record is not None:
        return str(record.status)
    row = run_row(run_group, competition_id, seed)
    tell(row, "waiting")
    settings = get_settings()
    # An agent outlives a killed orchestrator; the data of its run do so too.
    longest = limits.time_limit_seconds + _SLACK
    with (
        slot("agents"),
        local_copy(place, Dataset(edition, competition_id), "public", local_cache(), at_least=longest) as prepared,
    ):
        competition = registry.get(competition_id)
        where = hashlib.blake2b(f"{place.root} {run_group} {competition_id} {seed} {key}".encode(), digest_size=8)
        sample = competition.facts.files.sample_submission
        spec = RunSpec(
            run_id=f"{run_group}-{competition_id}-{seed}",
            competition_id=competition_id,
            seed=seed,
            agent=load_agent(agent, settings.agent_dirs),
            data=prepared / "public",
            workdir=settings.scratch / "runs" / where.hexdigest(),
            limits=limits,
            description=competition.obfuscated_description if obfuscated else None,
            labels={"group": run_group, "store": place.root},
            sample_submission=sample.removeprefix("public/") if sample.startswith("public/") else None,
        )
        runner = backend(isolation)
        with run_services(runner, spec, place, edition) as services:
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
                allowance=services.allowance,
                env={**secrets, **services.env},
            )
            result = _run(runner, spec, services, place, row, run_group, key, edition, isolation)
    return result.status


def _run(
    runner: Backend,
    spec: RunSpec,
    services: RunServices,
    store: Store,
    row: str,
    run_group: str,
    key: str,
    edition: Edition,
    isolation: Isolation,
) -> RunResult:
    handle = _start(runner, spec, services)
    tell(row, "running", "found running" if handle.attachment == "running" else "")
    try:
        result = runner.wait(handle, on_log=lambda line: tell(row, "running", line.strip()[:100]))
    except RunLost:
        tell(row, "running", "supervisor lost; starting anew")
        handle = _start(runner, spec, services)
        result = runner.wait(handle)
    services.close()  # what it wrote down is complete now
    if result.status == "cancelled":
        raise KeyboardInterrupt
    folder = RunFolder(store, run_group, spec.competition_id, spec.seed)
    store.remove(folder.url)
    files = services.files()
    if result.submission is not None:
        files["submission.csv"] = result.submission
    for part in ("logs", "code", "snapshots"):
        left: Path | None = getattr(result, part)
        if left is None:
            continue
        paths = sorted(p for p in left.rglob("*") if p.is_file() and not p.is_symlink())
        files |= {f"{part}/{path.relative_to(left).as_posix()}": path for path in paths}
    for name, path in files.items():
        store.put(f"{folder.url}/{name}", path)
    conditions: dict[str, Any] = {
        **isolation.conditions(),
        **({"obfuscated": True} if spec.description is not None else {}),
        **({"image": spec.agent.image_name, "image_digest": result.image} if result.image else {}),
        **{name: getattr(spec.limits, name) for name in ("cpus", "memory_bytes", "disk_bytes", "gpus")},
        **services.counts(),
        **run_conditions(),
    }
    record = RunRecord(
        key=key,
        run_group=run_group,
        run_id=spec.run_id,
        competition_id=spec.competition_id,
        seed=spec.seed,
        agent=spec.agent.full_name,
        edition=edition,
        backend=runner.name,
        status=result.status,
        message=result.message,
        exit_code=result.exit_code,
        started_at=result.started_at,
        finished_at=result.finished_at,
        duration_seconds=result.duration_seconds,
        submission_exists=result.submission is not None,
        time_limit_seconds=float(spec.limits.time_limit_seconds),
        code_fingerprint=spec.agent.fingerprint(),
        **conditions,
    )
    folder.write_run(seal(folder, record, files, get_settings().ledger_key.get_secret_value()))
    runner.discard(handle)
    return result


def _start(runner: Backend, spec: RunSpec, services: RunServices) -> RunHandle:
    handle = runner.start(spec)
    if handle.attachment == "new":
        services.reset_limits()
    return handle
