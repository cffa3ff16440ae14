"""The objects that settings and a request name: store, sources of downloads, agent and limits."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from common import slurm
from common.settings import Settings, get_settings
from competitions import registry
from sandbox.agent_registry import load_agent
from sandbox.definitions import Agent
from sandbox.limits import GIB, Limits
from storage.cache import Cache
from storage.dataset import Dataset
from storage.datasets.prepared import Data, data_of
from storage.sources import Source, source_for
from storage.store import Store
from tasks.wiring.process import apply_settings
from tasks.wiring.requests import RunRequest

_MACHINE_SHARE = 0.9
"""Share of the memory and of the free disk space of this machine that a run may use if the settings do not say."""


@dataclass(frozen=True)
class RunContext:
    """A request with its settings, store and agent, resolved once for a command, a flow or a task.

    Only the request is passed between processes; each process makes a context of it. The context does not have what can
    change while a group is run: prepared datasets and finished runs are read from the store where they are needed.
    """

    request: RunRequest
    settings: Settings
    store: Store
    agent: Agent

    @classmethod
    def of(cls, request: RunRequest) -> RunContext:
        """Resolve a request with the settings of this process. Raises `AgentError` for an agent that is not known."""
        store, settings = open_store(request.store), get_settings()
        return cls(request, settings, store, load_agent(request.agent, settings.agent_dirs))

    @property
    def requested_limits(self) -> Limits:
        """The limits that agent and request ask for. They are part of a run's key; the caps of a machine are not."""
        limits = self.agent.limits.override(time_limit_seconds=self.request.time_limit_seconds)
        return limits.capped(self._caps_of_request(limits))

    @property
    def limits(self) -> Limits:
        """The limits of a run on this machine: those of its agent or the caps of the operator, whichever are smaller.

        A time limit of the request is the operator's own, so it may be longer than the cap.
        """
        own_time = self.request.time_limit_seconds
        cap = caps(self.settings).override(time_limit_seconds=own_time)
        limits = self.agent.limits.override(time_limit_seconds=own_time)
        return limits.capped(cap).capped(self._caps_of_request(cap))

    @property
    def checkpoint_seconds(self) -> float:
        """Seconds between two checkpoints of a run; 0 if there are to be none."""
        if self.agent.resume is None:
            return 0.0
        for seconds in (self.request.checkpoint_every, self.settings.checkpoint_every):
            if seconds is not None:
                return seconds
        return self.agent.checkpoint_every_seconds

    @property
    def least_seconds(self) -> float:
        """The time that a run needs on its host: until its end, or until a checkpoint from which another continues."""
        limits = self.limits
        whole = limits.time_limit_seconds + limits.grace_seconds
        return min(self.checkpoint_seconds or whole, whole)

    @property
    def stated_limits(self) -> Limits:
        """The limits of the agent under the caps that the operator states, by which a host is chosen.

        Default caps are left out, because they depend on the machine: a run should not go to a small host only because
        its limits are smaller there.
        """
        settings, limits = self.settings, self.agent.limits
        stated = limits.override(memory_bytes=settings.agent_memory, cpus=settings.agent_cpus, gpus=settings.agent_gpus)
        return limits.capped(stated).capped(self._caps_of_request(stated))

    def _caps_of_request(self, others: Limits) -> Limits:
        """The caps that the request states itself, with the rest from `others`."""
        request = self.request
        return others.override(memory_bytes=request.max_memory, cpus=request.max_cpus, disk_bytes=request.max_disk)


def open_store(url: str | None = None) -> Store:
    """Apply the settings to this process and open the store at `url`, or by default the one in the settings."""
    apply_settings()
    return Store(url or get_settings().store)


def browser_link(store: Store, url: str) -> str:
    """The address of a file of a store for links in the Prefect UI, which a browser can open if possible."""
    served = get_settings().files_url
    if served and store.root == open_store().root:
        return f"{served.rstrip('/')}/{quote(store.relative(url))}"
    return store.browser_url(url)


def local_cache(patience: float | None = None) -> Cache:
    """The cache of local copies of prepared datasets; `patience` is how long, in seconds, to wait for room in it."""
    settings = get_settings()
    options = {} if patience is None else {"patience": patience}
    return Cache(settings.scratch / "cache", settings.cache_limit, **options)


def download_source(competition_id: str, raw_dir: str | None = None) -> Source:
    """The source of a competition's download; `raw_dir` takes precedence over Kaggle."""
    folder, settings = Path(raw_dir) if raw_dir else None, get_settings()
    return source_for(registry.get(competition_id), folder, settings.network_timeout)


def data_for(
    store: Store, dataset: Dataset, raw_dir: str | None = None, *, verified: bool = True, renew: bool = False
) -> Data:
    """How much of a dataset is there, with the current settings; see `storage.datasets.prepared.data_of`."""
    source = download_source(dataset.competition_id, raw_dir)
    params = get_settings().params_of(dataset.competition_id)
    return data_of(store, dataset, source, params, verified=verified, renew=renew)


def already_prepared(
    store: Store, dataset: Dataset, raw_dir: str | None = None, *, verified: bool = True, renew: bool = False
) -> bool:
    """Whether preparing the dataset with the current settings would change nothing."""
    return data_for(store, dataset, raw_dir, verified=verified, renew=renew).state == "prepared"


def caps(settings: Settings) -> Limits:
    """The highest limits of a run on this machine."""
    return Limits(
        time_limit_seconds=settings.agent_time_limit,
        grace_seconds=60.0,
        memory_bytes=settings.agent_memory or int(machine_memory() * _MACHINE_SHARE),
        cpus=settings.agent_cpus or slurm.cpus() or os.cpu_count(),
        disk_bytes=settings.agent_disk or max(int(_free(settings.scratch) * _MACHINE_SHARE), 1),
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


def machine_memory() -> int:
    """The memory of this machine, or of the Slurm job that has a part of it."""
    import psutil

    return slurm.memory_bytes() or int(psutil.virtual_memory().total)


def _free(folder: Path) -> int:
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free
