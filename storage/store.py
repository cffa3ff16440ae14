"""The store: one root URL, and the layout below it.

store.json                             the version of this layout, written at the first use
raw/<id>/<id>.zip                      + download.json (last)
prepared/<edition>/<id>/<key>/{public,private}/...  + manifest.parquet + commit.json (last); then never changed
prepared/<edition>/<id>/current.json    which key is current, or whose files it has, see storage.datasets.current
prepared/<edition>/<id>/<key>.uses/     who uses a dataset, see storage.datasets.uses
runs/<run_group>/<id>/<seed>/{submission.csv, logs/, code/, run.json, grade.json}
tables/<table>/run_group=<run_group>/*.parquet
reports/<run_group>/{summary.json, report.html, report.md}
integrity/...                           cached answers of language models about runs and texts
locks/<name>/<generation>.json          leases, see storage.lease
"""

from __future__ import annotations

import fnmatch
import glob
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from common import plain_json
from common.causes import cause_of, retrying
from common.concurrency import bounded_map
from common.errors import UsageError, UserError
from common.locations import absolute_url, local_path
from common.patience import patience
from competitions.preparing.archives.listing import files_below
from storage.dataset import Dataset
from storage.probing import probe
from storage.remote import describe_error, quick_options
from storage.writers import MAX_BYTES_IN_FLIGHT, MAX_TRANSFERS, MAX_WHOLE_BYTES, Destination, StoreError, read_whole

VERSION = 1
"""Version of the layout of a store, see `Store.require_known_version`."""
_OPENING_SECONDS = 20.0

T = TypeVar("T")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_VERSIONED = "store.json"
_PAGE = re.compile(r"reports/[^/]+/report\.html")
_MAGIC = frozenset("*?[]")
_BUCKETS = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss")
"""Schemes of URLs that begin with the name of a bucket or container."""


class InvalidJson(StoreError, ValueError):
    """A file of the store is not valid JSON."""


def root_url(text: str) -> str:
    """The root as a URL without a trailing slash, the same for all spellings of it. Plain paths become file:// URLs.

    Raises `UserError` if the URL cannot be that of a store.
    """
    root = absolute_url(text)
    # fsspec would take a URL with "::" for a chain of file systems, and would remove everything that matches a pattern.
    if local_path(root) is None and ("::" in root or _MAGIC & set(root)):
        raise UserError(f"store {text}: choose a URL without '::' and without any of * ? [ ]")
    scheme, _, location = root.partition("://")
    if scheme in _BUCKETS and not location.partition("/")[0]:
        raise UserError(f"store {text} names no bucket; write {scheme}://BUCKET/PREFIX")
    return root


def is_page(relative: str) -> bool:
    """Whether a file of the store is a page that this program wrote. Any other file may come from an agent.

    >>> is_page("reports/a+b/report.html"), is_page("runs/a/digits/0/logs/report.html")
    (True, False)
    """
    return _PAGE.fullmatch(relative) is not None


def browser_type(relative: str) -> str:
    """The content type of a file of the store for browsers, which must not execute files of agents."""
    return "text/html; charset=utf-8" if is_page(relative) else "text/plain; charset=utf-8"


def fsspec_at(url: str) -> tuple[Any, str]:
    """A client with short timeouts, and its path of `url`, for checking whether a server answers."""
    import fsspec

    fs, path = fsspec.core.url_to_fs(url, **quick_options(url))
    return fs, path.rstrip("/")


def opening_seconds() -> float:
    """Seconds for which opening is retried: enough for some 503s or resets, and short for a user who waits."""
    return min(patience(), _OPENING_SECONDS)


def check_run_group(name: str) -> str:
    """Return `name` if it is a valid name for a folder and a partition. Raises `UsageError` otherwise."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"run group {name!r}: use letters, digits, '.', '_' and '-', starting with a letter or digit")
    return name


def _other_store(error: Exception) -> str:
    """The advice to choose another store; empty for errors that pass."""
    return "" if cause_of(error).passes else "; choose another with --store"


class Store:
    """Paths below one root, and small reads and writes. Cheap to create; pass the URL between processes instead."""

    def __init__(self, root: str) -> None:
        self.root = root_url(root)

    @cached_property
    def top(self) -> Destination:
        """The root as a `Destination`. Raises `StoreError` for an unknown protocol."""
        try:
            return Destination(self.root)
        except (ValueError, ImportError) as error:
            raise StoreError(f"store {self.root}: {error}") from error

    def require_usable(self, seconds: float | None = None, on_wait: Callable[[str], None] = lambda _: None) -> None:
        """Try with small files what is used later, with short timeouts, and note the version in a new store.

        After errors that pass, such as one 503, it tries again for `seconds`, by default as long as a user waits, and
        calls `on_wait` with what it waits for. Raises `StoreError` with the cause, also if a newer version of mlebench
        has written the store.
        """
        limit = opening_seconds() if seconds is None else seconds
        give_up = time.monotonic() + limit  # a try that is not answered takes many seconds itself

        def passes(error: Exception) -> bool:
            return cause_of(error).passes and time.monotonic() < give_up

        try:
            retrying(self._probe, seconds=limit, on_wait=on_wait, max_pause_seconds=5.0, passes=passes)
            if self.require_known_version() is None:
                self.write_json(self.url(_VERSIONED), {"version": VERSION})
        except StoreError:
            raise
        except Exception as error:  # every file system has its own errors
            raise StoreError(
                f"store {self.root} cannot be written: {describe_error(error)}{_other_store(error)}"
            ) from error

    def require_known_version(self) -> int | None:
        """The version of the store; None if it states none, as before its first use.

        Raises `StoreError` if a newer version of mlebench has written it.
        """
        content = self.read_json(self.url(_VERSIONED))
        version = content.get("version") if isinstance(content, dict) else content
        if version is not None and (not isinstance(version, int) or version > VERSION):
            raise StoreError(
                f"store {self.root} has version {version}; this version of mlebench reads up to {VERSION}: update it"
            )
        return version

    def require_there(self) -> None:
        """The store exists, can be read, and is of no newer version. Raises `UsageError` or `StoreError` otherwise."""
        fs, root = (self.top.fs, self.top.root) if self.top.local else fsspec_at(self.root)
        try:
            there = fs.exists(root)
        except Exception as error:  # each file system has its own errors
            raise StoreError(f"store {self.root} cannot be read: {describe_error(error)}") from error
        if not there:
            raise UsageError(
                f"there is no store at {self.root}; `mlebench prepare` or `mlebench run` creates it, and --store or "
                "MLEBENCH_STORE names another"
            )
        self.require_known_version()

    def _probe(self) -> None:
        fs, path = (self.top.fs, self.top.root) if self.top.local else fsspec_at(self.root)
        probe(fs, path, self.root, local=self.top.local)

    def url(self, *parts: str | int) -> str:
        """The URL of a path below the root."""
        return "/".join([self.root, *map(str, parts)])

    def local(self, *parts: str | int) -> Path | None:
        """The local path of a path below the root; None if the store is not on a local file system."""
        return Path(self.top.path("/".join(map(str, parts)))) if self.top.local else None

    def raw(self, competition_id: str) -> str:
        """URL of a competition's download archive."""
        return self.url("raw", competition_id, f"{competition_id}.zip")

    def datasets(self, dataset: Dataset) -> str:
        """URL of the folder of a competition's prepared datasets in the edition in which this one lies."""
        return self.url("prepared", dataset.home, dataset.competition_id)

    def prepared(self, dataset: Dataset) -> str:
        """URL of a prepared dataset's folder. Raises `ValueError` for a dataset without a key."""
        if dataset.key is None:
            raise ValueError(f"{dataset} has no key: find the current dataset first")
        return f"{self.datasets(dataset)}/{dataset.key}"

    def run(self, run_group: str, competition_id: str, seed: int) -> str:
        """URL of a run's folder."""
        return self.url("runs", run_group, competition_id, seed)

    def relative(self, url: str) -> str:
        """The path of a URL relative to the root."""
        return url.removeprefix(self.root).strip("/")

    def shown(self, url: str) -> str:
        """Where a user finds something below the root: its local path, or the URL of a store elsewhere."""
        return str(self.local(self.relative(url)) or url)

    def browser_url(self, url: str, seconds: int = 7 * 86400) -> str:
        """A URL of a file that a browser can open without credentials for a while: signed, for a store on S3.

        Only a report is served as a page. A browser shows any other file as text, and saves it as a text file. URLs of
        other stores are returned unchanged. S3 accepts at most seven days.
        """
        if not self.root.startswith(("s3://", "s3a://")):
            return url
        relative = self.relative(url)
        name = re.sub(r"[^A-Za-z0-9._-]", "_", relative.rpartition("/")[2])
        answer = {
            "ResponseContentType": browser_type(relative),
            "ResponseContentDisposition": f'inline; filename="{name}{"" if is_page(relative) else ".txt"}"',
        }
        signed: str = self.top.fs.url(self.top.path(relative), expires=seconds, **answer)
        return signed

    def exists(self, url: str) -> bool:
        """Whether a file or folder exists."""
        return bool(self.top.fs.exists(self.top.path(self.relative(url))))

    def size(self, url: str) -> int | None:
        """The bytes of a file; None if it does not exist."""
        try:
            return int(self.top.fs.size(self.top.path(self.relative(url))))
        except FileNotFoundError:
            return None

    def read(self, url: str) -> bytes:
        """The content of a file. Raises `FileNotFoundError` if it does not exist."""
        return read_whole(self.top.fs, self.top.path(self.relative(url)))

    def concurrently(self, calls: Sequence[Callable[[], T]]) -> Iterator[T]:
        """Yield the results of calls that wait for the store, in order. On a local store, they run one by one."""
        if self.top.local:
            return (call() for call in calls)
        return bounded_map(((0, call) for call in calls), count=MAX_TRANSFERS, total=0)

    def read_json(self, url: str) -> Any | None:
        """The content of a small JSON file; None if it does not exist. Raises `InvalidJson` for a damaged file."""
        try:
            return json.loads(self.read(url))
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError, IsADirectoryError) as error:  # RecursionError: nested too deeply for Python
            raise InvalidJson(f"{self.relative(url)} in {self.root} is not valid JSON: {error}") from error

    def write_json(self, url: str, value: Any) -> None:
        """Write a small JSON file atomically."""
        self.write(url, self.json_bytes(value))

    @staticmethod
    def json_bytes(value: Any) -> bytes:
        """The content of a JSON file as written by `write_json`."""
        return plain_json.dumps(value, indent=1).encode()

    def write(self, url: str, content: bytes) -> None:
        """Write a small file atomically."""
        self.top.write(self.relative(url), [content])

    def put(self, url: str, path: Path) -> None:
        """Upload one local file."""
        size = path.stat().st_size
        if not self.top.local and size <= MAX_WHOLE_BYTES:
            self.top.put(self.relative(url), path.read_bytes())
            return
        with path.open("rb") as file:
            self.top.copy(self.relative(url), file, size=size)

    def put_many(self, url: str, files: Mapping[str, Path]) -> None:
        """Upload local files to paths below `url`, to an object store concurrently."""
        calls = (
            (min(path.stat().st_size, MAX_WHOLE_BYTES), partial(self.put, f"{url}/{name}", path))
            for name, path in files.items()
        )
        for _ in bounded_map(calls, count=1 if self.top.local else MAX_TRANSFERS, total=MAX_BYTES_IN_FLIGHT):
            pass

    def remove(self, url: str) -> None:
        """Remove a file or folder if it exists."""
        self.top.remove(self.relative(url))

    def glob(self, pattern: str) -> list[str]:
        """Sorted URLs below the root that match."""
        if self.top.local:  # a local root may have any characters, also those of a pattern
            paths: Iterable[str] = glob.iglob(pattern, root_dir=self.top.root, include_hidden=True)  # noqa: PTH207  # faster than Path.glob
        else:
            paths = self._matching(pattern)
        return sorted(self.url(path) for path in paths)

    def folder_names(self, where: str) -> list[str]:
        """Sorted names of the folders directly below a path in the store."""
        try:
            entries = self.top.fs.ls(self.top.path(where), detail=True)
        except FileNotFoundError:
            return []
        return sorted(info["name"].rstrip("/").rsplit("/", 1)[1] for info in entries if info["type"] == "directory")

    def _matching(self, pattern: str) -> Iterator[str]:
        """Paths of the files that match, from one flat listing: fsspec's `glob` lists each folder with a request."""
        parts = pattern.split("/")
        depth = next((number for number, part in enumerate(parts) if _MAGIC & set(part)), len(parts) - 1)
        where, patterns = "/".join(parts[:depth]), parts[depth:]
        for path, _ in files_below(self.top.fs, self.top.path(where)):
            names = path.split("/")
            if len(names) == len(patterns) and all(map(fnmatch.fnmatchcase, names, patterns)):
                yield f"{where}/{path}"
