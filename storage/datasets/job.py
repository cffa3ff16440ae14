"""What to prepare: recipes, which decide the bytes of a dataset, and jobs, which are sent to workers."""

from __future__ import annotations

import contextlib
import gc
import socket
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Protocol

from common.errors import UserError
from common.heap import release_freed_memory
from common.locations import local_path
from competitions import registry
from competitions.competition import Competition
from competitions.editions import EDITIONS, Edition
from competitions.facts import CompetitionFacts
from competitions.fingerprints import digest, libraries_of, module_file, shown
from competitions.preparing.declaration import Preparation
from competitions.preparing.download import Download
from storage.keys import content_key

# The modules of the engine that decide bytes. The others move bytes, and decide where they are written and when.
ENGINE = ("storage.datasets.archives", "storage.datasets.zipwriter")

ADOPTED = "published"
"""The `code` of a dataset that the published benchmark prepared. Its `download` stands for the adopted files."""


@dataclass(frozen=True)
class Recipe:
    """What a dataset is made of.

    Args:
        edition: edition of the benchmark, the first of those that have the same files.
        download: hash of the downloaded archive.
        code: fingerprint of the code that prepares the competition, with the versions of its libraries.
        params: the parameters of prepare.py.
    """

    edition: Edition
    download: str
    code: str
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Content key of the recipe, and of the dataset that is first made with it."""
        return content_key("dataset", self.edition, self.download, self.code, self.params)

    def same_inputs(self, other: Recipe) -> bool:
        """Whether both are made from the same download with the same parameters, perhaps by different code."""
        return (self.download, self.params) == (other.download, other.params)

    def to_json(self) -> dict[str, Any]:
        """The recipe as JSON values."""
        return asdict(self)


def recipe_of(
    competition: Competition, download_hash: str, edition: Edition, params: Mapping[str, Any] | None = None
) -> Recipe:
    """The recipe with which the code of this process makes a dataset. `params` override those of competition.yaml.

    A parameter that is null changes nothing, so it is not part of the recipe.
    """
    set_params = {name: value for name, value in competition.params(params).items() if value is not None}
    return Recipe(competition.files_of(edition), download_hash, code_of(competition), set_params)


def code_of(competition: Competition) -> str:
    """Fingerprint of the code that decides the bytes of a competition's datasets, and of its libraries."""
    return content_key(competition.fingerprint("prepare"), engine_fingerprint())


@cache  # the engine does not change while a process runs
def engine_fingerprint() -> str:
    """Fingerprint of the modules in `ENGINE` and of the libraries that they import."""
    files = {shown(path): path for path in map(module_file, ENGINE)}
    return digest("engine", files, {name for path in files.values() for name in libraries_of(path)})


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
        published: whether the download is the published archive by its MD5, which is read exactly as it is.
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
    published: bool = False

    def __post_init__(self) -> None:
        if self.edition not in EDITIONS:  # checked before anything is removed
            raise UserError(f"unknown edition {self.edition!r}; editions are {', '.join(EDITIONS)}")

    @property
    def journal(self) -> str:
        """Name of the journal, which depends on the dataset from which files are taken, because the plan does."""
        return f"{self.key}-{self.like.rpartition('/')[2]}" if self.like else self.key


def load_competition(job: Job) -> Preparable:
    """Load the competition of a job from its folder, or from the registry by its id."""
    competition = registry.load(Path(job.folder)) if job.folder else registry.get(job.competition_id)
    if job.code and _loaded_code(competition) != job.code:
        raise UserError(
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
    return _open_download(job.raw, job.recipe.download if job.recipe else job.key, identity, job.published)


def forget_downloads() -> None:
    """Close all downloads: otherwise the disk space of a removed one would not be free while this process lives."""
    _open_download.cache_clear()
    if _opened:  # a download and its nested archives refer to each other
        gc.collect()


# Both are global, because workers keep no other state between chunks, and reading a zip's directory is slow.
_opened: weakref.WeakSet[Download] = weakref.WeakSet()


@lru_cache(maxsize=1)
def _open_download(raw: str, _hash: str, _identity: tuple[int, ...], published: bool) -> Download:
    download = Download.open(raw, exact=published)
    _opened.add(download)
    return download


def release_memory() -> None:
    """Make Arrow and the C library return freed memory to the system."""
    if "pyarrow" in sys.modules:
        import pyarrow  # which another thread may be importing: this waits for it

        pyarrow.default_memory_pool().release_unused()
    release_freed_memory()
