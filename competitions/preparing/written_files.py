"""Datasets whose files a function of the competition writes itself, as `prepare` does in the published format.

`write(raw, public, private)` gets three directories. It runs in a process of its own, which has no secrets of the
operator, ends after a time limit, and is ended with its process group; what starts a session of its own goes on. It
works on an unpacked copy of the download, below a temporary directory that is also its current and its home directory:
what it leaves beside `public` and `private` is removed with it. It is not confined otherwise: it is code of the
operator, as every prepare.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import weakref
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from common import names, starting
from common.units import elapsed
from competitions.errors import BadCompetition, DownloadError
from competitions.preparing import limits
from competitions.preparing.declaration import Content, Preparation
from competitions.preparing.download import Download

_BLOCK_BYTES = 1 << 22


def written_by(folder: Path, module: str, function: str, raw: Download) -> Preparation:
    """Declare the files that a function of a competition's folder writes.

    They are kept until the declaration is gone.

    Args:
        folder: the competition's folder.
        module: the module of the function, for `competitions.competition.Competition.module`.
        function: its name. It is called as `function(raw, public, private)`.
        raw: the download.

    Raises:
        BadCompetition: the function fails, takes too long, or leaves what is not a file.
        DownloadError: a file of the download has a name that no file can have.
    """
    work = _Work(folder.name)
    try:
        _unpack(raw, work.raw)
        before = _state(folder)
        _run(folder, module, function, work)
        if _state(folder) != before:
            raise BadCompetition(
                f"{folder.name}: {function} changed files in {folder}, so it would not do the same again; let it write "
                "into public and private only"
            )
        out = Preparation()
        for tree, directory in ((out.public, work.public), (out.private, work.private)):
            for path in _files(directory, work.top):
                tree.content(path, Content(partial(_pieces, work, directory / path)))
    except BaseException:
        work.remove()  # the traceback refers to it
        raise
    return out


class _Work:
    """A temporary directory with the published layout. It is removed with the last content that refers to it."""

    def __init__(self, competition_id: str) -> None:
        if limits.scratch is not None:
            limits.scratch.mkdir(parents=True, exist_ok=True)
        self.top = Path(tempfile.mkdtemp(prefix="mlebench-prepare-", dir=limits.scratch)).resolve()
        self.remove = weakref.finalize(self, shutil.rmtree, self.top, ignore_errors=True)
        self.raw = self.top / competition_id / "raw"
        self.public, self.private = (self.top / competition_id / "prepared" / part for part in ("public", "private"))
        for directory in (self.raw, self.public, self.private, self.top / "tmp"):
            directory.mkdir(parents=True)


def _unpack(raw: Download, directory: Path) -> None:
    paths = raw.names()
    for path in paths:
        if why := names.problem(path):
            raise DownloadError(f"{names.shown(path)} cannot be unpacked: it {why}; rename it in the archive")
    for path, stream in raw.stream(paths):
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            shutil.copyfileobj(stream, file, _BLOCK_BYTES)


def _run(folder: Path, module: str, function: str, work: _Work) -> None:
    """Run the function. Raises `BadCompetition` that says how it ended, if not well."""
    report = work.top / "failure.json"
    arguments = [str(folder.absolute()), module, function, *map(str, (work.raw, work.public, work.private, report))]
    environment = starting.without_secrets(os.environ)
    environment |= {"HOME": str(work.top), "TMPDIR": str(work.top / "tmp")}
    process = subprocess.Popen(
        starting.command("competitions.write_files", *arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=work.top,
        env=environment,
        start_new_session=True,
    )
    try:
        code = process.wait(limits.time_limit)
    except subprocess.TimeoutExpired:
        raise BadCompetition(
            f"{folder.name}: {function} took more than {elapsed(limits.time_limit)} and was ended; raise "
            "MLEBENCH_PREPARE_TIME_LIMIT if it needs longer"
        ) from None
    finally:
        with contextlib.suppress(ProcessLookupError):  # its children, too, unless they started a session of their own
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if code == -signal.SIGKILL:
        raise BadCompetition(
            f"{folder.name}: the process of {function} was killed, most likely because memory ran out; try it on a "
            "machine with more"
        ).of_kind("memory")
    if code:
        failure: dict[str, Any] = json.loads(report.read_text("utf-8")) if report.is_file() else {}
        reason = failure.get("reason") or f"ended its process with exit code {code}"
        reason = reason.replace(f"{work.top}/", "")
        raise BadCompetition(f"{folder.name}: {function} {reason}").of_kind(failure.get("kind", "bug"))


def _files(directory: Path, top: Path) -> list[str]:
    """Paths of the files in a directory, sorted. Links to files below `top` count as these files.

    Raises `BadCompetition` for other links, also in place of the directory, and for what is no file.
    """
    if (actual := Path(os.path.realpath(directory))) != directory:
        raise BadCompetition(f"{directory.relative_to(top)} is a link to {actual}: write into the directory itself")
    found = []
    for folder, _, _ in os.walk(directory):
        for entry in os.scandir(folder):
            path = Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                continue
            actual = Path(os.path.realpath(path))  # `resolve` raises an error for a loop
            if entry.is_symlink() and not actual.is_relative_to(top):
                raise BadCompetition(f"{path.relative_to(top)} is a link to {actual}: write the file itself")
            if not path.exists() or not stat.S_ISREG(path.stat().st_mode):
                raise BadCompetition(f"{path.relative_to(top)} is no file: a link, if it is one, must lead to a file")
            found.append(path.relative_to(directory).as_posix())
    return sorted(found)


def _pieces(work: _Work, path: Path) -> Iterator[bytes]:
    """The content of a file of `work`, which exists as long as this is referred to."""
    with path.open("rb") as file:
        while piece := file.read(_BLOCK_BYTES):
            yield piece


def _state(folder: Path) -> set[tuple[str, int, int]]:
    """The files of a folder that code may use, with their sizes and times of modification."""
    return {
        (str(path), path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
