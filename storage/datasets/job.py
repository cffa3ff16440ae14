"""Jobs, which specify a dataset to prepare, and the interface of a competition that the engine needs."""

from __future__ import annotations

import contextlib
import gc
import socket
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from common.errors import UserError
from common.locations import local_path
from competitions.editions import EDITIONS, Edition
from competitions.facts import CompetitionFacts
from competitions.preparing.declaration import Preparation
from competitions.preparing.download import Download
from storage.datasets.recipe import Recipe

if TYPE_CHECKING:
    from competitions.competition import Competition


class Preparable(Protocol):
    """The interface of a competition for the engine, implemented by `competitions.competition.Competition`."""

    @property
    def id(self) -> str:
        """The competition's id."""
        ...

    @property
    def facts(self) -> CompetitionFacts:
        """The competition's facts, for the checksums of prepared files."""
        ...

    def describe(self, edition: Edition) -> str:
        """The description for agents in this edition."""
        ...

    def declare(self, raw: Download, edition: Edition, params: Mapping[str, Any] | None) -> Preparation:
        """Run prepare.py and return the declaration. Nothing is written."""
        ...

    def function(self, name: str) -> Callable[..., Iterable[bytes]]:
        """A function of prepare.py that computes a derived file."""
        ...


class CodeMismatch(UserError):
    """A process has imported other code or other versions of libraries than the one that sent the job."""


@dataclass(frozen=True)
class Job:
    """A dataset to prepare, as small values that can be sent to workers.

    Args:
        competition_id: id of the competition.
        raw: the download, as a local path or fsspec URL.
        out: the directory to write to, as a local path or fsspec URL.
        edition: edition of the benchmark.
        params: overrides of the `params` in competition.yaml.
        folder: the competition's folder, if the registry does not know the id.
        code: fingerprint of the code of prepare.py that the key stands for. A process that imported other code refuses
            the job. Without one, any code does.
        key: the content key, for which `out` is the only directory. An interrupted job with the same key is resumed,
            and a finished one is not done again. Without a key, the files of an earlier dataset are removed from `out`.
        recipe: what the dataset is made of, for the commit marker.
        like: URL of a committed dataset of the same download, whose files are taken where both have the same ones.
        like_edition: the edition that it is of, if `code` makes it: its archives are then known to be those that `code`
            declares.
    """

    competition_id: str
    raw: str
    out: str
    edition: Edition = "v1"
    params: Mapping[str, Any] = field(default_factory=dict)
    folder: str | None = None
    key: str = ""
    code: str = ""
    recipe: Recipe | None = None
    like: str | None = None
    like_edition: Edition | None = None

    def __post_init__(self) -> None:
        if self.edition not in EDITIONS:  # checked before anything is removed
            raise UserError(f"unknown edition {self.edition!r}; editions are {', '.join(EDITIONS)}")

    @property
    def checkpoint(self) -> str:
        """Name of the checkpoint: what is taken from another dataset is part of the plan."""
        return f"{self.key}-{self.like.rpartition('/')[2]}" if self.like else self.key


def load_competition(job: Job) -> Preparable:
    """Load the competition of a job from its folder, or from the registry by its id."""
    from competitions import registry
    from competitions.competition import Competition

    competition = Competition.load(Path(job.folder)) if job.folder else registry.get(job.competition_id)
    if job.code and _loaded_code(competition) != job.code:
        raise CodeMismatch(
            f"a process on {socket.gethostname()} has imported other code of {competition.id} than there is now; "
            "restart it, or the Dask workers"
        )
    return competition


_fingerprints: dict[Path, str] = {}  # global, because modules are imported once a process


def _loaded_code(competition: Competition) -> str:
    """The fingerprint of the code of prepare.py as this process imports it, or has imported it."""
    # The first call comes before the import. Later changes of the files do not change what was imported.
    return _fingerprints.setdefault(competition.folder, competition.fingerprint("prepare"))


def download_of(job: Job) -> Download:
    """The job's download."""
    identity: tuple[int, ...] = ()
    if path := local_path(job.raw):
        with contextlib.suppress(OSError):
            stat = path.stat()
            identity = (stat.st_ino, stat.st_size, stat.st_mtime_ns)  # a replaced file is another download
    # The editions of one download share it, with the archives in it that were decompressed.
    return _open_download(job.raw, job.recipe.download if job.recipe else job.key, identity)


def forget_downloads() -> None:
    """Keep no download open: in a process that lives on, its disk space would not be free when it is removed."""
    _open_download.cache_clear()
    if _opened:  # a download and its nested archives refer to each other
        gc.collect()


# Both are global, because workers keep no other state between chunks, and reading a zip's directory is slow.
_opened: weakref.WeakSet[Download] = weakref.WeakSet()


@lru_cache(maxsize=1)
def _open_download(raw: str, _hash: str, _identity: tuple[int, ...]) -> Download:
    download = Download.open(raw)
    _opened.add(download)
    return download
