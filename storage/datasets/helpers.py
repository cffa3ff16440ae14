"""Processes that copy files and build archives while this one runs prepare.py and formats tables.

A helper imports little, so that it is ready within a few tenths of a second and takes some 40 MB: neither pandas nor
Arrow nor the competition. It reads the download by itself, gets one chunk at a time, and answers with the rows of the
manifest. What a helper that died was doing is done by this process: executing a chunk again writes the same bytes.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, Pipe
from typing import TYPE_CHECKING, Any

from common.heap import retain_freed_memory
from common.locations import local_path
from common.starting import search_path
from competitions.preparing.archives.containers import ARCHIVE_SUFFIXES
from competitions.preparing.archives.zips import ZipContainer
from competitions.preparing.declaration import Archive
from competitions.preparing.download import Download, Member
from storage.datasets.execute import execute
from storage.datasets.journal import DRAFTS
from storage.datasets.manifest import Columns, table_of
from storage.datasets.plan import Chunk, Copies, Several, Task, unpack
from storage.writers import Destination

if TYPE_CHECKING:
    import pyarrow as pa

_WORTHWHILE = 16 << 20
"""Bytes of a download from which helpers are faster: starting one takes as long as copying a thousand files."""
_MOST = 7
_FEW = 500
"""Members of a download without archives that are too few to start helpers before it is known what they would do."""
_PORTABLE = ("copies", "archive")  # of these tasks the code of the competition is no part


def helpers_for(raw: str, out: str, download: Download) -> int:
    """The number of helpers with which preparing is fastest; none for remote files and for small downloads."""
    if local_path(raw) is None or local_path(out) is None or sum(download.container.sizes.values()) < _WORTHWHILE:
        return 0
    return min((os.cpu_count() or 1) - 1, _MOST)


def has_files_to_copy(download: Download) -> bool:
    """Whether helpers will certainly have something to do, so that they should start before prepare.py runs.

    What is made of a download of a few tables is mostly computed by prepare.py, which helpers cannot.
    """
    names = download.container.sizes
    return len(names) > _FEW or any(name.lower().endswith(ARCHIVE_SUFFIXES) for name in names)


class Helpers:
    """Helper processes for one download and one directory, as a context: they are gone when it ends."""

    def __init__(self, raw: str, out: str, count: int) -> None:
        self._raw, self._out, self._count = raw, out, count
        self._processes: list[_Helper] = []
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start the processes, unless they were started. `executing` does so if it has enough for them."""
        while len(self._processes) < self._count:
            self._processes.append(_Helper(self._raw, self._out))

    def __enter__(self) -> Helpers:
        return self

    def __exit__(self, *_: object) -> None:
        for helper in self._processes:
            helper.end()
        for thread in self._threads:  # of which the connection has ended
            thread.join()
        for helper in self._processes:
            helper.close()

    @contextlib.contextmanager
    def executing(
        self, chunks: Iterable[Chunk], download: Download, execute_here: Callable[[Chunk], Columns]
    ) -> Iterator[Callable[[], list[pa.Table]]]:
        """Have helpers execute chunks in the background of the block, the largest first.

        Yields a function that executes with this process what remains, and returns the rows of each chunk. It raises
        the first error of any of them.
        """
        chunks = list(chunks)
        portable = [_weight(chunk) for chunk in chunks if _is_portable(chunk.task)]
        if portable and sum(portable) >= _WORTHWHILE:
            self.start()
        todo = _Chunks(chunks)

        def finish() -> list[pa.Table]:
            while todo.in_hand():
                if chunk := todo.take(portable=False):
                    todo.done(execute_here(chunk))
                else:
                    todo.wait()
            return todo.rows

        for helper in self._processes:
            work = threading.Thread(target=_feed, args=(helper, todo, download), name="helper", daemon=True)
            self._threads.append(work)
            work.start()
        try:
            yield finish
        finally:
            todo.clear()


def _feed(helper: _Helper, todo: _Chunks, download: Download) -> None:
    chunk = None
    try:
        helper.wait_until_ready()
        while chunk := todo.take(portable=True):
            done = helper.execute(chunk, download)
            if isinstance(done, Exception):
                todo.fail(done)
            else:
                todo.done(done)
    except Exception:  # the helper died, or its answer cannot be read: this process will see the reason
        if chunk:
            todo.put_back(chunk)


def _is_portable(task: list[Any]) -> bool:
    """Whether a helper can execute it."""
    kind, *rest = task
    return kind in _PORTABLE or (kind == "several" and all(map(_is_portable, rest[0])))


def _weight(chunk: Chunk) -> int:
    """The work of a chunk, in bytes: creating a file takes as long as copying 16 KB."""
    return chunk.bytes + (chunk.files << 14)


class _Chunks:
    """Chunks to execute, for several threads. `rows` are those of the finished ones, a table for each."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self._chunks = sorted(chunks, key=_weight)  # the last one first
        self._taken = 0
        self._error: Exception | None = None
        self._changed = threading.Condition()
        self.rows: list[pa.Table] = []

    def in_hand(self) -> bool:
        """Whether chunks are waiting or being executed. Raises the first error of any of them."""
        with self._changed:
            if self._error:
                raise self._error
            return bool(self._chunks) or self._taken > 0

    def take(self, *, portable: bool) -> Chunk | None:
        """The largest chunk, or the largest that a helper can execute; None if there is none."""
        with self._changed:
            for place in reversed(range(len(self._chunks))):
                if not portable or _is_portable(self._chunks[place].task):
                    self._taken += 1
                    return self._chunks.pop(place)
            return None

    def wait(self) -> None:
        """Wait until a chunk that was taken is finished or put back."""
        with self._changed:
            self._changed.wait_for(lambda: self._chunks or not self._taken or self._error)

    def done(self, rows: Columns) -> None:
        """Keep the rows of a chunk that was taken."""
        table = table_of(rows)  # now, while others create files, not in the end
        with self._changed:
            self.rows.append(table)
            self._return()

    def put_back(self, chunk: Chunk) -> None:
        """Return a chunk that was taken and not executed."""
        with self._changed:
            self._chunks.append(chunk)
            self._return()

    def fail(self, error: Exception) -> None:
        """Keep the error of a chunk that was taken."""
        with self._changed:
            self._error = self._error or error
            self._return()

    def clear(self) -> None:
        """Drop what has not begun."""
        with self._changed:
            self._chunks.clear()

    def _return(self) -> None:
        self._taken -= 1
        self._changed.notify_all()


class _Helper:
    """One process, and the connection to it."""

    def __init__(self, raw: str, out: str) -> None:
        self._connection, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "storage.datasets.helpers", f"{theirs.fileno()}"],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": search_path()},
            )
        self._connection.send((raw, out))

    def wait_until_ready(self) -> None:
        """Raises `EOFError` if the process has died."""
        self._connection.recv()

    def execute(self, chunk: Chunk, download: Download) -> Columns | Exception:
        """Execute a chunk: its rows, or the error of doing so. Raises `EOFError` or `OSError` if the process died."""
        self._connection.send((chunk.task, _scratch_files(chunk, download)))
        done: Columns | Exception = self._connection.recv()
        return done

    def end(self) -> None:
        """End the process, whatever it does: either all is done, or an error has made it useless."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Close the connection, which no thread uses any more."""
        self._connection.close()


def _scratch_files(chunk: Chunk, download: Download) -> dict[str, str]:
    """Nested archives of a chunk that this process has decompressed to scratch files, and where these are."""
    task = unpack(chunk.task)
    labels: set[str] = set()
    for each in task.tasks if isinstance(task, Several) else [task]:
        if isinstance(each, Copies):
            labels.add(each.archive)
        elif isinstance(each, Task) and isinstance(each.operation, Archive):
            labels |= {entry.archive for _, entry in each.operation.entries if isinstance(entry, Member)}
    found = {}
    for label in labels:
        parts = label.split("!/") if label else []
        for depth in range(len(parts)):
            outer = "!/".join(parts[: depth + 1])
            container = download.view(outer).container
            if isinstance(container, ZipContainer) and (path := container.scratch):
                found[outer] = path
    return found


def main() -> None:
    """Execute the chunks that come through the connection, whose file descriptor is the argument, until it ends."""
    retain_freed_memory()
    with Connection(int(sys.argv[1])) as connection, contextlib.suppress(EOFError, OSError):
        raw, out = connection.recv()
        download, destination = Download.open(raw), Destination(out, DRAFTS)
        known: set[str] = set()
        connection.send("ready")
        while True:
            task, scratch = connection.recv()
            connection.send(_executed(task, scratch, known, download, destination))


def _executed(
    task: list[Any], scratch: dict[str, str], known: set[str], download: Download, destination: Destination
) -> Columns | Exception:
    try:
        for label in sorted(scratch.keys() - known, key=len):  # the outer ones first
            with contextlib.suppress(OSError):  # it decompresses them by itself
                download.adopt(label, scratch[label])
            known.add(label)
        return execute([unpack(task)], None, download, destination)
    except Exception as error:
        return error


if __name__ == "__main__":
    main()
