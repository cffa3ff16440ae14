"""Runs in progress: on this host, from its slots, and on other hosts, from what they note in the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from common.settings import get_settings
from storage.lease import held, run_lease
from storage.runs.folders import RunFolder, folders_with, is_seed
from storage.store import Store
from tasks.wiring.host import host_slots
from tasks.wiring.queued import queued
from tasks.wiring.tries import FILE, Tries, Try

State = Literal["waiting", "running", "interrupted"]


@dataclass(frozen=True)
class Going:
    """A run that has not ended."""

    folder: RunFolder
    state: State
    """`interrupted`: its agent was started, and no process waits for its end."""
    host: str
    since: datetime | None = None
    """When its agent was started, or found again; None if it waits."""
    gpus: int | None = None
    """Known of this host only."""
    tries: int | None = None
    """How often its agent was started."""
    resumed: int | None = None
    """How many of these times from a checkpoint."""

    @property
    def seconds(self) -> float | None:
        """Time since then."""
        return None if self.since is None else max(0.0, (datetime.now(UTC) - self.since).total_seconds())


def in_progress(store: Store, run_group: str | None = None, begun: Iterable[RunFolder] | None = None) -> list[Going]:
    """The runs of a group, or of all, that have not ended, by name. Those that wait are known of this host only.

    Args:
        store: The store.
        run_group: The name of the group.
        begun: The folders that have the file `tasks.wiring.tries.FILE`, if they are known.
    """
    host, found = get_settings().host_name, dict[str, Going]()
    for claim in host_slots().waiting():
        if (folder := _folder(claim.labels, store, run_group)) is not None:
            found[folder.name] = Going(folder, "waiting", host)
    for holder in host_slots().holders():
        if (folder := _folder(holder.claim.labels, store, run_group)) is not None:
            state: State = "running" if holder.waited_for else "interrupted"
            since = datetime.fromisoformat(holder.since)
            found[folder.name] = Going(folder, state, host, since, holder.claim.gpus)
    for folder in folders_with(store, FILE, run_group) if begun is None else begun:
        tries = Tries(store, folder.url).read()
        resumed = sum(each.resumed_at is not None for each in tries) or None
        if folder.name in found:
            found[folder.name] = replace(found[folder.name], tries=len(tries) or None, resumed=resumed)
        elif tries and not _recorded(folder, tries[-1]):
            alive = held(store, run_lease(folder.run_group, folder.competition_id, folder.seed))
            began = datetime.fromisoformat(tries[-1].began_at)
            found[folder.name] = Going(
                folder, "running" if alive else "interrupted", tries[-1].host, began, None, len(tries), resumed
            )
    for labels in queued():
        folder = _folder(labels, store, run_group)
        if folder is not None and (folder.name not in found or found[folder.name].state == "interrupted"):
            found[folder.name] = Going(folder, "waiting", host)
    return [found[name] for name in sorted(found)]


def _recorded(folder: RunFolder, last: Try) -> bool:
    """Whether the run's record is that of its last try: the tries are stored with the run if there were several."""
    record = folder.read_run_if_valid()
    if record is None:
        return False
    return record.finished_at is None or record.finished_at >= datetime.fromisoformat(last.began_at)


def _folder(labels: Mapping[str, str], store: Store, run_group: str | None) -> RunFolder | None:
    """The folder of a run that has a slot or waits for one, if it is one of those that are looked for."""
    group, seed = labels.get("group", ""), labels.get("seed", "")
    if labels.get("store") != store.root or run_group not in (None, group) or not is_seed(seed):
        return None
    return RunFolder(store, group, labels.get("competition", ""), int(seed))
