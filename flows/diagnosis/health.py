"""Checks before a long run, for `mlebench doctor`: each is a function that returns findings."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from common.errors import UserError
from common.settings import Settings
from common.units import counted, data_size, listed, size
from competitions import registry
from storage.store import Store

Verdict = Literal["ok", "warn", "fail"]
_PREPARING_MEMORY_BYTES = 4 * 1024**3  # bytes of memory that preparing needs at most, with a margin
_AGENT_MEMORY_BYTES = 16 * 1024**3
_BIG_HOST_BYTES = 128 << 30
DELEGATE = "systemd-run --user --scope -p Delegate=yes mlebench ..."
_ENFORCED = {"cgroup": "cgroup", "rlimit": "the kernel", "watched": "measuring", "affinity": "affinity"}
_BUILD_BASE = "mlebench build base"
_LACKING = {
    "userns": "its mapping of users (userns-remap) does not apply to agents' containers",
    "selinux": "SELinux does not confine agents' containers, because the folders they use keep their labels",
}


@dataclass(frozen=True)
class Finding:
    """One line of `mlebench doctor`: what was checked, the result, and what to do about it."""

    about: str
    verdict: Verdict
    message: str
    remedy: str = ""


def check_store(store: Store) -> Finding:
    """The store answers and is writable. One on this machine that does not exist yet is not created."""
    folder = store.local()
    try:
        if folder is not None and not folder.exists():
            from flows.preparing import existing

            parent = existing(folder)
            if not os.access(parent, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(parent))
            return Finding("store", "ok", f"{store.root} does not exist yet; prepare and run create it")
        store.require_usable()
    except Exception as error:
        return Finding("store", "fail", str(error))
    return Finding("store", "ok", f"{store.root} is writable")


def check_disk(store: Store, competition_ids: list[str], raw_dir: str | None = None) -> Finding:
    """The disk has room for what is not prepared of the selection."""
    from flows.preparing import Preparing, existing, needs, without_room

    folder = store.local()
    if folder is None:
        return Finding("disk", "ok", "the store is not on this machine; its space is not checked")
    preparing = Preparing(competition_ids, store.root, raw_dir=raw_dir)
    todo = [name for name, state in preparing.states(store).items() if state in ("downloaded", "missing")]
    wanted = needs(store, todo, preparing)
    needed, free = sum(need.prepared + need.archive for need in wanted), shutil.disk_usage(existing(folder)).free
    text = f"{data_size(free)} free for the store"
    if not todo:
        return Finding("disk", "ok", f"{text}; all selected competitions are prepared")
    text += f", about {data_size(needed)} needed to prepare {counted(len(todo), 'competition')}"
    if refused := without_room(store, wanted):
        text += f"; no room for {listed(list(refused), 5)}"
        return Finding(
            "disk", "fail", text, "free space (mlebench gc), select fewer competitions, or choose another store"
        )
    return Finding("disk", "ok" if free > 1.5 * needed else "warn", text)


def check_datasets(store: Store, competition_ids: Iterable[str]) -> Finding:
    """The prepared datasets of the selection were made by the current code, or proven to be what it makes."""
    from storage.datasets.prepared import made_by_other_code

    outdated = made_by_other_code(store, competition_ids)
    if outdated:
        from flows.commands.advice import renewing

        return Finding(
            "datasets",
            "warn",
            f"prepared by other code: {listed(outdated, 5)}",
            renewing(outdated, store),
        )
    return Finding("datasets", "ok", "all that are prepared are what the current code makes")


def check_scratch(settings: Settings, store: Store, competition_ids: Iterable[str]) -> Finding:
    """The scratch directory is writable, and has room for agents and for the largest local copy of prepared data."""
    from flows.preparing import PREPARED_SHARE, archive_bytes
    from sandbox.rootless import roots

    try:
        settings.scratch.mkdir(parents=True, exist_ok=True)
        probe = settings.scratch / ".probe"
        probe.write_bytes(b"probe")
        probe.unlink()
    except OSError as error:
        return Finding("scratch", "fail", str(error), "choose another directory with MLEBENCH_SCRATCH")
    try:
        roots.require_own(settings.scratch)
    except UserError as error:
        return Finding("scratch", "fail", str(error))
    free = shutil.disk_usage(settings.scratch).free
    text = f"{data_size(free)} free for working files in {settings.scratch}"
    # Agents read data of a store elsewhere from local copies.
    copies = [] if store.top.local else [archive_bytes(name) * PREPARED_SHARE for name in competition_ids]
    if (largest := max(copies, default=0.0)) > free:
        text += f", and a local copy of the largest dataset needs about {data_size(largest)}"
        return Finding("scratch", "warn", text, "make room, or choose another directory with MLEBENCH_SCRATCH")
    return Finding("scratch", "ok" if free > 10**10 else "warn", text)


def check_temporary() -> Finding:
    """The directory for temporary files has room. Large tables need up to twice their size there."""
    import tempfile

    from common import temporary

    try:
        temporary.require_room()
    except UserError as error:
        return Finding("temporary", "fail", str(error))
    folder = tempfile.gettempdir()
    return Finding(
        "temporary", "ok", f"{data_size(shutil.disk_usage(folder).free)} free for temporary files in {folder}"
    )


def check_access(competition_ids: list[str], raw_dir: str | None, timeout: float = 60.0) -> Iterator[Finding]:
    """Credentials, and for each competition whether its rules are accepted."""
    from storage.sources.local import Local

    kaggle_ids = [name for name in competition_ids if registry.get(name).facts.source == "kaggle"]
    if not kaggle_ids:
        yield Finding("kaggle", "ok", "not needed: the selected competitions are prepared or bundled")
        return
    # `check_availability` is about these.
    not_for_everybody = {name for name in kaggle_ids if registry.get(name).facts.availability}
    if raw_dir is not None:
        local = Local(Path(raw_dir))
        missing = [name for name in kaggle_ids if not local.at_hand(registry.get(name))]
        text = f"{len(kaggle_ids) - len(missing)} of {len(kaggle_ids)} downloads in {raw_dir}"
        missing = [name for name in missing if name not in not_for_everybody]
        yield Finding(
            "downloads", "fail" if missing else "ok", text, f"missing: {listed(missing, 5)}" if missing else ""
        )
        return
    from storage.sources.kaggle import access

    answers = access(kaggle_ids, timeout)
    by_state = {state: [answer for answer in answers if answer.state == state] for state in {a.state for a in answers}}
    for state in ("no credentials", "unreachable"):
        if answers_of_state := by_state.pop(state, None):
            yield Finding(
                "kaggle",
                "fail",
                answers_of_state[0].message.removeprefix(f"{answers_of_state[0].competition_id}: "),
                answers_of_state[0].page or "",
            )
    if accessible := by_state.pop("ok", None):
        yield Finding("kaggle", "ok", f"{len(accessible)} of {len(kaggle_ids)} competitions can be downloaded")
    for state, answers_of_state in sorted(by_state.items()):
        for answer in (each for each in answers_of_state if each.competition_id not in not_for_everybody):
            yield Finding(f"kaggle {state}", "fail", answer.message or answer.competition_id, answer.page or "")


def check_availability(store: Store, competition_ids: Sequence[str], raw_dir: str | None) -> Iterator[Finding]:
    """The competitions that not everybody can download are prepared, or their archives are at hand."""
    from flows.commands.availability import REMEDY, not_for_everybody, notices

    found = not_for_everybody(store, competition_ids, ["v1"], raw_dir)
    for text in notices(found, len(competition_ids)):
        yield Finding("availability", "warn", text, REMEDY)


def check_memory(agents: int) -> Finding:
    """There is enough memory for preparing and for agents."""
    import psutil

    free = psutil.virtual_memory().available
    text = f"{size(free)} available"
    if free < _PREPARING_MEMORY_BYTES:
        return Finding("memory", "fail", text, f"preparing needs up to {size(_PREPARING_MEMORY_BYTES)}")
    if free < _AGENT_MEMORY_BYTES:
        return Finding(
            "memory",
            "warn",
            text,
            f"{agents} agents run at the same time and share it; MLEBENCH_AGENTS sets their number",
        )
    return Finding("memory", "ok", text)


def labels() -> list[str]:
    """The labels of this host: cpu; gpu if nvidia-smi shows a GPU; big if it has more than 128 GiB of memory."""
    import psutil

    from sandbox.host.gpus import installed

    big = psutil.virtual_memory().total > _BIG_HOST_BYTES
    return ["cpu", *(["gpu"] if installed() else []), *(["big"] if big else [])]


def check_docker(required: bool = False) -> Iterator[Finding]:
    """A container engine answers, and a real run in it has its limits. Only untrusted agents need one."""
    from sandbox.docker import engines, trial
    from sandbox.docker.engine import connect
    from sandbox.limits import Limits

    verdict: Verdict = "fail" if required else "warn"
    needed = "untrusted agents need it, or --backend rootless"
    try:
        client = connect()
        with contextlib.closing(client):
            engine = engines.describe(client)
            engines.check_limits(engine, Limits(memory_bytes=_AGENT_MEMORY_BYTES, processes=1))
            problems = trial.problems(client)
    except UserError as error:
        yield Finding("docker", verdict, str(error), needed)
        return
    if problems is None:
        yield Finding("docker", "warn", f"{engine} has no base image yet, so no container was tried", _BUILD_BASE)
    elif problems:
        yield Finding("docker", verdict, f"{engine}: {'; '.join(problems)}", needed)
    else:
        yield Finding("docker", "ok", f"{engine} runs agents")
    for option, lack in _LACKING.items():
        if engine.has(option):
            yield Finding("docker", "warn", f"{engine}: {lack}", "docs/security.md says what protects the host")


def check_rootless(scratch: Path) -> Finding:
    """An ordinary user can isolate agents with bubblewrap, what enforces their limits, and what agents run in."""
    from sandbox.definitions import BASE_IMAGE
    from sandbox.rootless.limits import delegated, enforcement
    from sandbox.rootless.machine import problem
    from sandbox.rootless.roots import root_of

    if (found := problem()) is not None:
        return Finding("rootless", "warn", f"--backend rootless cannot run: {found.message}", found.remedy)
    try:
        root_of(BASE_IMAGE, scratch)
    except UserError as error:
        return Finding("rootless", "warn", f"--backend rootless cannot run yet: {error}")
    by = enforcement(delegated())
    text = "--backend rootless runs; " + ", ".join(f"{limit} by {_ENFORCED[how]}" for limit, how in by.items())
    if by["memory"] != "cgroup":
        return Finding("rootless", "ok", f"{text} ({DELEGATE} makes the kernel limit memory)")
    return Finding("rootless", "ok", text)


def check_dask(settings: Settings) -> Finding:
    """The configured scheduler answers and has workers; without one, a local cluster starts, as in a run."""
    if settings.dask_address is None:
        from storage.datasets.cluster import cluster
        from tasks.wiring.process import apply_settings

        with cluster(None, 1, apply_settings):
            return Finding(
                "dask", "ok", f"a local cluster starts; preparing uses {counted(settings.dask_workers, 'worker')}"
            )
    from storage.datasets.cluster import connect

    try:
        with connect(settings.dask_address) as client:
            workers = len(client.scheduler_info(n_workers=-1)["workers"])
    except Exception:
        return Finding(
            "dask", "fail", f"nothing answers at {settings.dask_address}", "start it, or unset MLEBENCH_DASK_ADDRESS"
        )
    if not workers:
        return Finding(
            "dask",
            "fail",
            f"{settings.dask_address} has no workers",
            "dask worker ADDRESS starts one",
        )
    text = f"{settings.dask_address} with {workers} workers"
    if settings.dask_address.startswith("tcp:"):
        certificates = "give it certificates: docs/production.md, Dask on other machines"
        return Finding("dask", "warn", f"{text}, which run the code of all who reach it", certificates)
    return Finding("dask", "ok", text)


def check_versions() -> Finding:
    """Installed packages have the required versions: results depend on some of them."""
    from importlib import metadata

    from packaging.requirements import Requirement

    wrong, count = [], 0
    for line in metadata.requires("mlebench-pipeline") or ():
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        count += 1
        try:
            installed = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            wrong.append(f"{requirement.name} is missing")
            continue
        if not requirement.specifier.contains(installed, prereleases=True):
            wrong.append(f"{requirement.name} is {installed}, wanted {requirement.specifier}")
    if wrong:
        return Finding("versions", "fail", listed(wrong, 5), "pip install -r requirements.txt")
    return Finding("versions", "ok", f"{count} packages have the required versions")


def guarded(about: str, check: Callable[[], Finding | Iterable[Finding]]) -> list[Finding]:
    """The findings of a check. A check that raises becomes a failed finding."""
    try:
        findings = check()
        return [findings] if isinstance(findings, Finding) else list(findings)
    except Exception as error:
        text = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        return [Finding(about, "fail", f"could not be checked: {text.splitlines()[0]}")]
