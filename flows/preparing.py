"""What is to be prepared, and what cannot be: the same answer for commands, dry runs and flows, before any work."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from common.causes import explain
from common.errors import UsageError, UserError
from common.settings import get_settings
from common.units import data_size
from competitions import registry
from competitions.editions import Choice, chosen
from competitions.preparing.archives.listing import sizes_on_disk
from competitions.variant import VariantName
from flows.credentials import logged_in, no_credentials
from storage.dataset import Dataset
from storage.datasets.prepared import DataState
from storage.sources import Source
from storage.store import Store
from tasks.checksum import keeps_archive
from tasks.wiring.context import data_for, download_source

_STATES: tuple[DataState, ...] = ("prepared", "made", "downloaded", "missing")
# Size of a prepared dataset relative to its download, measured on images (1.0) and tables (1.5 to 3).
PREPARED_SHARE = 1.3
_UNKNOWN_DOWNLOAD_BYTES = 2 * 10**9  # assumed bytes of a download whose size the facts do not state


@dataclass(frozen=True)
class Preparing:
    """The competitions to prepare, and the options."""

    competition_ids: list[str]
    store: str
    edition: Choice = "v1"
    raw_dir: str | None = None
    keep_raw: bool = False
    skip_verification: bool = False
    renew: bool = False

    def states(self, store: Store) -> dict[str, DataState | Exception]:
        """How much of each competition is there, of the edition with the least; or the error in finding out.

        A variant whose competition is to be prepared as well is made of that, and counts as `made`.
        """
        states = {name: self._state(store, name) for name in self.competition_ids}
        for name, state in states.items():
            of_parent = states.get(parent_of(name), "prepared")
            if of_parent != "prepared" and (self.renew or isinstance(state, Exception)):
                states[name] = "made"
        return states

    def _state(self, store: Store, name: str) -> DataState | Exception:
        options: dict[str, Any] = {"verified": not self.skip_verification, "renew": self.renew}
        try:
            datasets = (Dataset(edition, name) for edition in chosen(self.edition))
            states = [data_for(store, dataset, self.raw_dir, **options).state for dataset in datasets]
        except Exception as error:
            return error
        return max(states, key=_STATES.index)


def parent_of(competition_id: str) -> str:
    """The id of the competition that a variant is made of; empty for other competitions."""
    name = VariantName.of(competition_id)
    return name.parent_id if name is not None else ""


@dataclass(frozen=True)
class Outlook:
    """What preparing will do, as far as is known before.

    Args:
        states: how much of each competition is there, or the error in finding out.
        refused: the errors of competitions that will not be prepared, because their download cannot be had or the disk
            has no room for them.
        login: whether there are credentials for Kaggle, or the error in finding them.
    """

    states: Mapping[str, DataState | Exception]
    refused: Mapping[str, UserError] = field(default_factory=dict)
    login: bool | UserError = True

    @classmethod
    def of(cls, store: Store, preparing: Preparing) -> Outlook:
        """Examine the store, the downloads at hand and the disk."""
        states = preparing.states(store)
        missing = [name for name, state in states.items() if state == "missing"]
        login = logged_in() if missing and preparing.raw_dir is None else True
        found = {name: _no_download([name], preparing.raw_dir, login) for name in missing}
        refused = {name: error for name, error in found.items() if error is not None}
        if get_settings().space_check:
            todo = [
                name for name, state in states.items() if state in ("downloaded", "missing") and name not in refused
            ]
            refused |= without_room(store, needs(store, todo, preparing), keep_raw=preparing.keep_raw)
        to_derive = [name for name, state in states.items() if state == "made" and parent_of(name) in refused]
        refused |= {name: refused[parent_of(name)] for name in to_derive}
        return cls(states, refused, login)

    @property
    def todo(self) -> list[str]:
        """The competitions that are not prepared."""
        return [name for name, state in self.states.items() if state != "prepared"]

    def reasons(self, raw_dir: str | None) -> list[str]:
        """Why competitions cannot be prepared, each reason once; not of those that not everybody can download."""
        texts = [f"{name}: {explain(state)}" for name, state in self.states.items() if isinstance(state, Exception)]
        whole = {name: error for name, error in self.refused.items() if parent_of(name) not in self.refused}
        refused = {name: error for name, error in whole.items() if not _is_optional(name)}
        missing = [name for name in refused if raw_dir is None and self.states[name] == "missing"]
        of_all = _no_download(missing, raw_dir, self.login) if missing else None
        others = [error for name, error in refused.items() if of_all is None or name not in missing]
        return [*texts, *map(str, filter(None, (of_all, *others)))]

    def require_some(self, raw_dir: str | None, *, of_all: bool = False) -> None:
        """Raise one error if all competitions that are to be prepared, or with `of_all` all there are, are refused.

        Not if not everybody can download any of them: each is then reported as unavailable.
        """
        wanted = list(self.states) if of_all else self.todo
        if any(name not in self.refused for name in wanted) or all(map(_is_optional, wanted)):
            return
        expected = [name for name in wanted if not _is_optional(name)]
        missing = [name for name in expected if self.states[name] == "missing"]
        error = _no_download(missing, raw_dir, self.login) if missing else None
        raise error or self.refused[expected[0]]


def _is_optional(name: str) -> bool:
    """Whether the others go on without it if it cannot be downloaded."""
    return registry.get(name).facts.availability is not None


def _no_download(names: Sequence[str], raw_dir: str | None, login: bool | UserError) -> UserError | None:
    """The error about downloads that are needed and cannot be had; None if they can be tried."""
    if raw_dir is None:
        if isinstance(login, UserError):
            return login
        return None if login else no_credentials(names)
    directory = Path(raw_dir).expanduser()
    if not directory.is_dir():
        return UsageError(f"--raw-dir {directory} is not a directory, and {names[0]} is not prepared yet")
    if len(names) > 1:
        return UserError(
            f"{directory} has none of the {len(names)} downloads; put them there as {names[0]}.zip and so on"
        )
    source = download_source(names[0], raw_dir)
    try:
        source.fetch(registry.get(names[0]), directory)
    except UserError as error:
        return error
    return None


class Need(NamedTuple):
    """Approximate bytes that a competition takes on the disk of the store: its archive, and its prepared files.

    An archive that is kept anyway counts as one of these.
    """

    competition_id: str
    archive: int
    prepared: int


def needs(store: Store, competition_ids: Iterable[str], preparing: Preparing) -> list[Need]:
    """What preparing these competitions takes, by the sizes of archives at hand, or else those of the facts."""
    return [_need(store, name, preparing) for name in competition_ids]


def archive_bytes(competition_id: str) -> int:
    """Bytes of the download by the facts; an assumption where they do not state it."""
    facts = registry.get(competition_id).facts
    return facts.size_bytes or (_UNKNOWN_DOWNLOAD_BYTES if facts.source == "kaggle" else 0)


def _need(store: Store, name: str, preparing: Preparing) -> Need:
    competition = registry.get(name)
    stored = store.size(store.raw(name))
    source = download_source(name, preparing.raw_dir)
    at_hand = _size_at_hand(source, name)
    archive = stored or at_hand or archive_bytes(name)
    homes = {competition.files_of(edition) for edition in chosen(preparing.edition)}
    partial = store.local("raw", name, "partial")
    done = sum(sizes_on_disk(str(partial))) if partial is not None else 0
    todo, prepared = 0 if stored else max(archive - done, 0), int(archive * PREPARED_SHARE) * len(homes)
    return Need(name, 0, prepared + todo) if keeps_archive(name) else Need(name, todo, prepared)


def _size_at_hand(source: Source, name: str) -> int | None:
    """Bytes of the download in a directory of downloads; None if there is none."""
    competition = registry.get(name)
    if source.name != "local" or not source.at_hand(competition):
        return None
    path = source.fetch(competition, Path())
    return path.stat().st_size if path.is_file() else sum(sizes_on_disk(str(path)))


def without_room(store: Store, wanted: Iterable[Need], *, keep_raw: bool = False) -> dict[str, UserError]:
    """The competitions for which the disk of the store has no room, if those before them are prepared that fit.

    An archive is removed once its dataset is prepared, unless `keep_raw`; as many as are downloaded at a time are there
    together. The space of a store on another machine is not known.
    """
    folder = store.local()
    if folder is None:
        return {}
    free = shutil.disk_usage(existing(folder)).free
    prepared, archives, refused = 0, list[int](), dict[str, UserError]()
    for need in wanted:
        others = sorted([*archives, need.archive], reverse=True)
        together = sum(others if keep_raw else others[: get_settings().downloads])
        if prepared + need.prepared + together <= free:
            prepared += need.prepared
            archives.append(need.archive)
            continue
        before = " after those before it" if prepared else ""
        refused[need.competition_id] = UserError(
            f"not enough space in {store.root}: {need.competition_id} needs about "
            f"{data_size(need.prepared + need.archive)}, and {data_size(max(free - prepared, 0))} are free{before}; "
            "make room (mlebench gc), choose another store, or pass --skip-space-check"
        )
    return refused


def existing(folder: Path) -> Path:
    """The nearest folder that exists, from this one upwards."""
    while not folder.exists():
        folder = folder.parent
    return folder
