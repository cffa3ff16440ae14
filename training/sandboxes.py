"""Sandboxes of episodes: runs of a backend whose agent waits, and in which a client runs commands.

A sandbox has what a run has: the same folders, the same limits, the same isolation, no network. It is used for one
episode and then removed. A process has its sandboxes in a folder of its own, which it holds a lock of; the next process
removes what a killed one has left.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path, PurePath, PurePosixPath
from typing import Self, TypeVar

from common import names, trees
from common.locks import acquire, locked
from sandbox import backends
from sandbox.agent_registry import load_agent
from sandbox.backend import Backend, RunHandle, RunResult, RunSpec
from sandbox.confinement.world import HOME
from sandbox.definitions import GIVEN
from sandbox.errors import BackendError, RunLost, UntrustedAgentRefused
from sandbox.isolation import Isolation
from sandbox.supervision import control
from sandbox.world.files import remove_tree
from sandbox.world.instructions import instructions
from sandbox.world.layout import DESCRIPTION
from training import BACKENDS
from training.shell import ContainerPipe, Pipe, ProcessPipe, Ran, Shell

AGENT = Path(__file__).parent / "agent"
SUBMISSION = "submission/submission.csv"
"""Path below the home."""
WAITING_SECONDS = 3600.0
"""The longest time that a sandbox waits for an episode. Its container's time limit counts from its start."""
END_SECONDS = 10.0
"""The longest wait for what is known of a sandbox that seems to have ended."""
WATCH_SECONDS = 60.0
"""The longest wait for the thread that watches a sandbox, when the sandbox has ended."""
_FIXED = ("agent", *GIVEN)
"""What a client cannot write, besides the data."""


Item = TypeVar("Item")


class NoSuchFile(Exception):
    """A path that cannot be read or written; the message says why."""


class Sandbox:
    """One sandbox. Its methods may be called from any thread, one at a time."""

    def __init__(self, backend: Backend, spec: RunSpec) -> None:
        """Start it. Raises `BackendError`."""
        self.spec, self._backend = spec, backend
        self.started = time.monotonic()
        self._layout = control.Layout(spec.workdir.absolute())
        self._handle = backend.start(spec)
        self._result: RunResult | None = None
        self.ended: str | None = None
        """Why it has ended, if it has."""
        self.lost = False
        """Whether it has ended for a reason that its agent has not caused, such as an engine that was restarted."""
        self._shell: Shell | None = None
        self._watch = threading.Thread(target=self._wait, args=(self._handle,), name="sandbox", daemon=True)
        self._watch.start()

    def _wait(self, handle: RunHandle) -> None:
        """Enforce the limits of the disk and of time, as for any run."""
        try:
            self._result = self._backend.wait(handle)
            self.ended = self._result.message or "all of its processes have ended"
        except (BackendError, OSError) as error:
            self.ended, self.lost = str(error), True

    def begin(self, seconds: float, seed: int) -> None:
        """State the time limit and the seed of an episode that begins now. Raises `BackendError` if it has ended."""
        limits = replace(self.spec.limits, time_limit_seconds=seconds)
        # It is mounted as a single file, so its text is replaced and not the file.
        text = instructions(replace(self.spec, limits=limits), self.home)
        (self._layout.home / "instructions.txt").write_text(text, encoding="utf-8")
        try:
            self._shell = Shell(self._pipe, {"TIME_LIMIT_SECONDS": f"{seconds:g}", "SEED": str(seed)})
        except OSError as error:
            raise BackendError(f"a sandbox has ended ({error}): {self.ended or 'its shell does not start'}") from error

    @property
    def home(self) -> PurePath:
        """The agent's home, as its instructions name it."""
        return HOME if self._in_container else self._layout.home

    @property
    def _in_container(self) -> bool:
        return self._backend.name == "docker"

    def _pipe(self) -> Pipe:
        if self._in_container:
            return ContainerPipe(self._layout.workdir)
        task = control.read(self._layout.task, control.LaunchSpec)
        if task is None or self.ended:
            raise BackendError(self.ended or "its process has ended")
        return ProcessPipe(self._layout.home, task.env)

    def run(self, command: str, seconds: float, output_bytes: int) -> Ran:
        """Run a command; see `Shell.run`. Raises `RunLost` if the sandbox has ended."""
        if self._shell is None:
            raise RunLost("the episode has not begun")
        try:
            return self._shell.run(command, seconds, output_bytes)
        except RunLost:
            self._watch.join(END_SECONDS)  # it knows why, and collects the submission
            raise

    def read(self, path: str, offset: int, size: int) -> tuple[bytes, int]:
        """A part of a file and the length of the file, below the home or of the data. Raises `NoSuchFile`."""
        with _reasons(path), trees.opened_below(*self._located(path)) as file:
            length = os.fstat(file).st_size
            os.lseek(file, min(offset, length), os.SEEK_SET)
            return b"".join(trees.pieces(file, size)) if size else b"", length

    def write(self, path: str, content: bytes) -> None:
        """Write a file below the home; its folders are created. Raises `NoSuchFile`.

        A new file takes the place of what has the name, so nothing that a link leads to is changed.
        """
        parts = _parts(path, self.home)
        if parts[0] == "data" or parts[0] in _FIXED:
            raise NoSuchFile(f"{path} cannot be written: it is given")
        with _reasons(path), trees.opened_folder(self._layout.home) as home, contextlib.ExitStack() as opened:
            owner, folder = os.fstat(home), home
            for name in parts[:-1]:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=folder)
                    os.chown(name, owner.st_uid, owner.st_gid, dir_fd=folder, follow_symlinks=False)
                folder = os.open(name, trees.FOLDER, dir_fd=folder)
                opened.callback(os.close, folder)
            draft = f".{secrets.token_hex(8)}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                with os.fdopen(os.open(draft, flags, 0o644, dir_fd=folder), "wb") as file:
                    os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
                    file.write(content)
                os.replace(draft, parts[-1], src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(draft, dir_fd=folder)
                raise

    def take(self, path: str, target: Path, most: int) -> None:
        """Copy a file out of the home, after which the agent cannot change it. Raises `NoSuchFile`."""
        with _reasons(path), trees.opened_below(*self._located(path)) as file, target.open("wb") as copy:
            if os.fstat(file).st_size > most:
                raise NoSuchFile(f"{path} is larger than {most:,} bytes")
            for piece in trees.pieces(file, most):
                copy.write(piece)

    def take_submission(self, target: Path, most: int) -> bool:
        """Copy the submission out; False if there is none. The sandbox may have ended."""
        if self.ended:
            self._watch.join(WATCH_SECONDS)
            found = self._result.submission if self._result is not None else None
            if found is None or found.stat().st_size > most:
                return False
            shutil.copyfile(found, target)
            return True
        try:
            self.take(SUBMISSION, target, most)
        except NoSuchFile:
            return False
        return True

    def _located(self, path: str) -> tuple[Path, Path]:
        """The folder of this machine that a file lies below, and its path there. Raises `NoSuchFile`."""
        relative = Path(*_parts(path, self.home))
        if not relative.is_relative_to("data") or not self._in_container:
            return self._layout.home, relative
        if relative.name == DESCRIPTION and len(relative.parts) == 2 and self.spec.description is not None:
            return self._layout.home, Path(DESCRIPTION)  # it is mounted over that of the data
        return self.spec.data, relative.relative_to("data")

    def close(self) -> None:
        """End it and remove everything of it. A command in progress, which another thread waits for, ends with it."""
        self.ended = self.ended or "it was removed"
        with contextlib.suppress(BackendError):
            self._backend.stop(self._handle)
        self._watch.join(WATCH_SECONDS)  # it uses the folder that is removed
        with contextlib.suppress(BackendError):
            self._backend.discard(self._handle)
        if self._shell is not None:
            self._shell.close()


class Sandboxes:
    """Starts the sandboxes of this process, some of them before they are needed. Close it, or use it with `with`."""

    def __init__(self, isolation: Isolation, scratch: Path, warm: int = 0) -> None:
        """Remove what killed processes have left, and keep up to `warm` sandboxes started ahead.

        Args:
            isolation: the backend; `allow_untrusted` for one that does not isolate.
            scratch: a folder on a local disk. Each process makes a folder of its own in `scratch`/episodes.
            warm: number of sandboxes that wait for an episode.

        Raises:
            UntrustedAgentRefused: the backend does not isolate, which is not allowed.
            BackendError: this machine cannot run sandboxes with that backend.
        """
        if isolation.backend == "process" and not isolation.allow_untrusted:
            raise UntrustedAgentRefused(
                "the process backend does not isolate the commands of episodes from this machine: use docker, or "
                'accept that with --allow-untrusted (in Python: allow=["untrusted"])'
            )
        if isolation.backend not in BACKENDS:
            raise BackendError(f"the {isolation.backend} backend runs no episodes: use {' or '.join(BACKENDS)}")
        self.agent = load_agent(AGENT)
        backends.require_runnable(self.agent, isolation, scratch=scratch)
        self._backend = backends.load(isolation.backend).create(isolation, scratch=scratch)
        self._warm, self._ready, self._closed = warm, list[Sandbox](), False
        self._mutex = threading.Lock()
        self._filling: threading.Thread | None = None
        top = scratch / "episodes"
        top.mkdir(parents=True, exist_ok=True)
        with locked(top / "lock", wait=True):
            list(collect(top))
            self._folder = top / f"{isolation.backend}-{secrets.token_hex(4)}"
            self._folder.mkdir(mode=0o700)
            self._lock = acquire(self._folder / "lock")

    def take(self, make_spec: Callable[[Path], RunSpec], kind: str) -> Sandbox:
        """A sandbox that no episode has used, and start another one of its kind for later.

        Args:
            make_spec: the run, given its work directory.
            kind: sandboxes of the same kind can stand for each other; the label `kind` of the run.

        Raises:
            BackendError: it cannot be started.
        """
        with self._mutex:
            usable = [each for each in self._ready if each.spec.labels["kind"] == kind and _is_fresh(each)]
            sandbox = usable[0] if usable else None
            if sandbox is not None:
                self._ready.remove(sandbox)
        sandbox = sandbox or self._start(make_spec)
        self.start_ahead(make_spec, kind)
        return sandbox

    def start_ahead(self, make_spec: Callable[[Path], RunSpec], kind: str) -> None:
        """Start sandboxes of a kind for later episodes, without waiting for them; see `take`."""
        with self._mutex:
            if self._warm and not self._closed and (self._filling is None or not self._filling.is_alive()):
                self._filling = threading.Thread(target=self._fill, args=(make_spec, kind), daemon=True)
                self._filling.start()

    def _start(self, make_spec: Callable[[Path], RunSpec]) -> Sandbox:
        spec = make_spec(self._folder / secrets.token_hex(6))
        limits = replace(spec.limits, time_limit_seconds=spec.limits.time_limit_seconds + WAITING_SECONDS)
        return Sandbox(self._backend, replace(spec, limits=limits))

    def _fill(self, make_spec: Callable[[Path], RunSpec], kind: str) -> None:
        """Replace old sandboxes, and those of other kinds, until there are enough of one kind."""
        while True:
            with self._mutex:
                old = [each for each in self._ready if not _is_fresh(each)]
                others = [each for each in self._ready if each.spec.labels["kind"] != kind and each not in old]
                if self._closed or len(self._ready) - len(old) - len(others) >= self._warm:
                    return
                removed = old or (others if len(self._ready) >= self._warm else [])[:1]
                self._ready = [each for each in self._ready if each not in removed]
            for sandbox in removed:
                sandbox.close()
            try:
                sandbox = self._start(make_spec)
            except BackendError:  # the next episode says why
                return
            with self._mutex:
                if not self._closed:
                    self._ready.append(sandbox)
                    continue
            sandbox.close()
            return

    def close(self) -> None:
        """End all sandboxes of this process and remove their files."""
        with self._mutex:
            self._closed, ready, self._ready = True, self._ready, []
        if self._filling is not None:
            self._filling.join()
        in_parallel(Sandbox.close, ready)
        self._backend.close()
        remove_tree(self._folder)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def collect(top: Path, dry: bool = False) -> Iterator[Path]:
    """End the sandboxes that killed processes have left in a folder, unless `dry`. Yields each folder before that."""
    for folder in sorted(path for path in top.iterdir() if path.is_dir()):
        with locked(folder / "lock") as lock:
            if lock is None:
                continue
            yield folder
            if dry:
                continue
            backend = backends.load(folder.name.rsplit("-", 1)[0])
            in_parallel(backend.remove, sorted(path for path in folder.iterdir() if path.is_dir()))
            remove_tree(folder)


def in_parallel(work: Callable[[Item], object], items: Sequence[Item]) -> None:
    """Call a function for each of several items at the same time: ending a sandbox is mostly waiting."""
    if items:
        with ThreadPoolExecutor(len(items)) as pool:
            list(pool.map(work, items))


def _is_fresh(sandbox: Sandbox) -> bool:
    return sandbox.ended is None and time.monotonic() - sandbox.started < WAITING_SECONDS


def _parts(path: str, home: PurePath) -> tuple[str, ...]:
    """The parts of a path below the home. Raises `NoSuchFile` if it leads elsewhere, or can be no path."""
    relative = path.removeprefix(f"{home}/").removeprefix(f"{HOME}/")
    if reason := names.problem(relative):
        raise NoSuchFile(f"{path!r} is no path below {home}: it {reason}")
    return PurePosixPath(relative).parts


@contextlib.contextmanager
def _reasons(path: str) -> Iterator[None]:
    try:
        yield
    except trees.NotRegular as error:
        raise NoSuchFile(str(error)) from None
    except OSError as error:
        raise NoSuchFile(f"{path}: {error.strerror or error}") from None
