"""The store, the sources of downloads and the limits of runs, as configured in the settings."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from urllib.parse import quote

from common.settings import Settings, get_settings
from competitions import registry
from sandbox.definitions import Agent
from sandbox.limits import GIB, Limits
from storage.cache import Cache
from storage.dataset import Dataset
from storage.datasets.prepared import is_prepared, needs_download
from storage.sources import Source, source_for
from storage.store import Store
from tasks.wiring.process import apply_settings
from tasks.wiring.requests import RunRequest

_SHARE = 0.9
"""Share of the memory and of the free disk space of this machine that a run may use if the settings do not say."""


def open_store(url: str | None = None) -> Store:
    """Apply the settings to this process and open the store at `url`, or by default the one in the settings."""
    apply_settings()
    return Store(url or get_settings().store)


def browser_link(store: Store, url: str) -> str:
    """The address of a file of a store for links in the Prefect UI: one that a browser can open, if there is one."""
    served = get_settings().files_url
    if served and store.root == open_store().root:
        return f"{served.rstrip('/')}/{quote(store.relative(url))}"
    return store.browser_url(url)


def local_cache(patience: float | None = None) -> Cache:
    """The cache of local copies of prepared datasets; `patience` is how long, in seconds, to wait for room in it."""
    settings = get_settings()
    more = {} if patience is None else {"patience": patience}
    return Cache(settings.scratch / "cache", settings.cache_limit, **more)


def download_source(competition_id: str, raw_dir: str | None = None) -> Source:
    """The source of a competition's download; `raw_dir` takes precedence over Kaggle."""
    folder, settings = Path(raw_dir) if raw_dir else None, get_settings()
    return source_for(registry.get(competition_id), folder, settings.network_timeout, settings.patience)


def already_prepared(
    store: Store, dataset: Dataset, raw_dir: str | None = None, *, verified: bool = True, renew: bool = False
) -> bool:
    """Whether preparing the dataset with the current settings would change nothing; see `is_prepared`."""
    source = download_source(dataset.competition_id, raw_dir)
    params = get_settings().params_of(dataset.competition_id)
    return is_prepared(store, dataset, source, params, verified=verified, renew=renew)


def archive_needed(store: Store, dataset: Dataset, raw_dir: str | None = None, *, renew: bool = False) -> bool:
    """Whether preparing the dataset with the current settings needs its download; see `needs_download`."""
    source = download_source(dataset.competition_id, raw_dir)
    return needs_download(store, dataset, source, get_settings().params_of(dataset.competition_id), renew=renew)


def limits_of(agent: Agent, request: RunRequest, settings: Settings) -> Limits:
    """The limits of a run on this machine: those of its agent or the caps of the operator, whichever are smaller.

    A time limit of the request is the operator's own, so it may be longer than the cap.
    """
    wanted = agent.limits.override(time_limit_seconds=request.time_limit_seconds)
    cap = caps(settings).override(time_limit_seconds=request.time_limit_seconds)
    return wanted.capped(cap).capped(caps_of(request, cap))


def stated_limits(agent: Agent, request: RunRequest, settings: Settings) -> Limits:
    """The limits of an agent under the caps that the operator states; hosts are chosen by their memory, cores and GPUs.

    What a cap is by default depends on the machine: a run should not go to a small host because it may have less there.
    """
    stated = agent.limits.override(
        memory_bytes=settings.agent_memory, cpus=settings.agent_cpus, gpus=settings.agent_gpus
    )
    return agent.limits.capped(stated).capped(caps_of(request, stated))


def caps_of(request: RunRequest, others: Limits) -> Limits:
    """The caps that the request states itself, with the rest from `others`."""
    return others.override(memory_bytes=request.max_memory, cpus=request.max_cpus, disk_bytes=request.max_disk)


def caps(settings: Settings) -> Limits:
    """The most that a run may have on this machine."""
    import psutil

    return Limits(
        time_limit_seconds=settings.agent_time_limit,
        grace_seconds=60.0,
        memory_bytes=settings.agent_memory or int(psutil.virtual_memory().total * _SHARE),
        cpus=settings.agent_cpus or os.cpu_count(),
        disk_bytes=settings.agent_disk or max(int(_free(settings.scratch) * _SHARE), 1),
        processes=settings.agent_processes,
        gpus=settings.agent_gpus,
        snapshots=1000,
        snapshot_bytes=10 * GIB,
        log_bytes=GIB,
        submission_bytes=20 * GIB,
        collected_bytes=20 * GIB,
        collected_files=100_000,
        free_bytes=settings.free_disk,
    )


def _free(folder: Path) -> int:
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free
