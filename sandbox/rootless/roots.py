"""Root file systems of agents: directories in the scratch folder, which runs see read-only and share.

roots/names/<image>      the digest of the root of an image, as a line
roots/<digest>/rootfs/   the root
roots/<digest>/root.json the environment variables of its image, its size, and where it came from
roots/<digest>/lock      locked by every run that uses it, see `hold`
roots/.new-*/            a root that is being made, or what it is made of; its maker holds its lock

A root is complete from the moment on at which it has its name, and never changes. What has no name and no user is
removed by `remove_unused`. All functions can be called by several processes at the same time.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from common import trees
from common.locks import locked, release
from common.syncing import sync_file_system
from sandbox.errors import BackendError, BuildError
from sandbox.rootless.archives import Content, untagged
from sandbox.rootless.rootfs import make_mount_points, require_usable
from sandbox.world.files import bytes_on_disk, remove_tree

NEW, TRASH = ".new-", ".trash-"
LOCK_SECONDS = 60.0
"""Time to wait for the lock of a root, which those who list and remove roots have for moments."""
HALF_MADE_SECONDS = 3600.0
"""Age at which a folder that nobody has locked was left by a process that was killed."""


@dataclass(frozen=True)
class Root:
    """The root file system of an image."""

    path: Path
    """The directory; to be mounted read-only."""
    digest: str
    """SHA-256 (hex): the image's id, as a container engine shows it, or the hash of what was imported."""
    environment: dict[str, str]
    """The environment variables that the image sets."""


@dataclass(frozen=True)
class Entry:
    """A root on this machine, for listings."""

    names: tuple[str, ...]
    """The images that have this root."""
    digest: str
    bytes: int
    in_use: bool
    damaged: bool = False
    """Its `root.json` cannot be read."""


def require_own(scratch: Path) -> None:
    """Raise `BackendError` if another user could have put roots there, or could change them.

    A link `roots` in a folder of one's own may lead to those of somebody else, who has made them for all.
    """
    roots = scratch / "roots"
    with contextlib.suppress(FileNotFoundError):
        facts = scratch.stat()
        own, of_all = facts.st_uid in (0, os.getuid()), facts.st_mode & stat.S_IWOTH
        if of_all and facts.st_mode & stat.S_ISVTX:  # as /tmp: nobody can replace what another user has made
            own, of_all = roots.lstat().st_uid in (0, os.getuid()), 0
        if not own or of_all or roots.stat().st_mode & stat.S_IWOTH:
            raise BackendError(
                f"other users can write to {scratch} or its folder roots, or it is theirs: choose a folder that only "
                "you can write to with MLEBENCH_SCRATCH, such as one of mktemp -d"
            )


def _folder(scratch: Path) -> Path:
    """The folder of all roots, if it may be used. Raises `BackendError`."""
    require_own(scratch)
    folder = scratch / "roots"
    if folder.is_symlink() and not folder.exists():
        raise BackendError(
            f"{folder} leads to {folder.readlink()}, which does not exist: make that folder, or the link anew"
        )
    return folder


def root_of(image: str, scratch: Path, built_by: str = "base") -> Root:
    """The root file system of an image.

    Args:
        image: its name in container engines.
        scratch: the scratch folder.
        built_by: the argument of `mlebench build` that makes it.

    Raises:
        BackendError: it has not been built on this machine, or is damaged; the message says how to build it.
    """
    folder = _folder(scratch)
    build = f"mlebench build {built_by} --rootless"
    try:
        return _read(folder, _name_file(folder, image).read_text("utf-8").strip())
    except OSError:
        raise BackendError(
            f"this machine has no root file system of image {image}: {build} makes it in {folder}"
        ) from None
    except ValueError as error:
        raise BackendError(
            f"the root file system of image {image} is damaged ({error}): {build} makes it again"
        ) from None


def hold(scratch: Path, digest: str) -> int:
    """Keep a root from being removed; returns a descriptor to close, or to hand down to a process that outlives this.

    It may belong to another user, who has made it for all users of a disk.

    Raises:
        BackendError: it has been removed, or its lock is not free in `LOCK_SECONDS`.
    """
    if (held := _held(scratch / "roots" / digest / "lock")) is not None:
        return held
    raise BackendError(f"the root file system {digest[:12]} has been removed: start the run again")


def _held(lock: Path) -> int | None:
    """A descriptor with the shared lock of a root; None if the root has been removed."""
    deadline = time.monotonic() + LOCK_SECONDS
    with contextlib.suppress(FileNotFoundError):
        while True:
            held = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
                if _is_lock(held, lock):
                    return held
            release(held)  # another process has locked it, or the root was removed meanwhile
            if time.monotonic() > deadline:
                raise BackendError(
                    f"another process keeps {lock} locked: end it (fuser -v {lock} shows it), and start the run again"
                )
            time.sleep(0.05)
    return None


def add(image: str, scratch: Path, source: str, unpack: Callable[[int], Content]) -> Root:
    """Make the root of an image, and give it the image's name once it is complete.

    Args:
        image: name of the image.
        scratch: the scratch folder.
        source: where it comes from, for people.
        unpack: fills an empty directory, which it gets as a descriptor.

    Raises:
        BuildError: it cannot be made.
    """
    with new_folder(scratch) as new:
        (new / "rootfs").mkdir(mode=0o755)
        with trees.opened_folder(new / "rootfs") as top:
            content = unpack(top)
            require_usable(source, content, new / "rootfs")
            make_mount_points(top)
        facts = {"environment": content.environment, "bytes": bytes_on_disk(new / "rootfs"), "source": source}
        (new / "root.json").write_text(json.dumps(facts, indent=1, allow_nan=False), encoding="utf-8")
        (new / "root.json").chmod(0o644)
        sync_file_system(new)
        return _publish(image, new, content.digest)


@contextlib.contextmanager
def new_folder(scratch: Path) -> Iterator[Path]:
    """A folder for what is being made. It is in use during the block, and removed after it unless it has been renamed.

    Raises:
        BuildError: the disk is full, or something cannot be read or written.
    """
    folder = _folder(scratch)
    new = folder / f"{NEW}{secrets.token_hex(8)}"
    try:
        new.mkdir(mode=0o755, parents=True)
        (new / "lock").touch(mode=0o644)
        with locked(new / "lock", shared=True):
            yield new
    except OSError as error:
        raise BuildError(f"no root file system can be made in {folder}: {error.strerror or error}") from error
    finally:
        remove_tree(new)


def entries(scratch: Path) -> list[Entry]:
    """All roots on this machine, by their first names."""
    folder, found = scratch / "roots", []
    for path in folder.glob("[!.]*/rootfs"):
        with contextlib.suppress(FileNotFoundError, PermissionError), locked(path.parent / "lock") as mine:
            names, digest, in_use = _names(folder, path.parent.name), path.parent.name, mine is None
            try:
                found.append(Entry(names, digest, _facts(path.parent)["bytes"], in_use))
            except (ValueError, FileNotFoundError):
                found.append(Entry(names, digest, bytes_on_disk(path.parent), in_use, damaged=True))
    return sorted(found, key=lambda entry: (not entry.names, entry.names, entry.digest))


def remove_unused(scratch: Path, *, dry: bool) -> Iterator[Entry]:
    """Remove the roots that no image has any more. One that a run uses is kept, and yielded as in use."""
    folder = scratch / "roots"
    for entry in entries(scratch):
        path = folder / entry.digest
        if entry.names or entry.in_use:
            if not entry.names:
                yield entry
            continue
        with contextlib.suppress(FileNotFoundError), locked(path / "lock") as mine:
            if mine is not None and not _names(folder, entry.digest):  # both may have changed since it was listed
                if not dry:
                    removed = folder / f"{TRASH}{secrets.token_hex(8)}"
                    path.rename(removed)
                    remove_tree(removed)
                yield entry
    before = time.time() - HALF_MADE_SECONDS
    for path in [*folder.glob(f"{NEW}*"), *folder.glob(f"{TRASH}*")]:  # of processes that were killed
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime > before:
                continue
            with locked(path / "lock") as mine:
                if mine is None:
                    continue
                size = bytes_on_disk(path)
                if not dry:
                    remove_tree(path)
            yield Entry((), path.name, size, in_use=False)


def _publish(image: str, new: Path, digest: str) -> Root:
    """Give a complete root its digest as its name, unless there is one already, and the name of its image."""
    folder = new.parent
    while True:
        with contextlib.suppress(FileNotFoundError):  # `new` has been moved, or is as good as the one there is
            try:
                new.rename(folder / digest)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
        try:
            root = _read(folder, digest)
        except (ValueError, FileNotFoundError):  # it is damaged, or has been removed meanwhile
            if not new.exists():
                raise BuildError(f"the root of {image} has been removed while it was made: build it again") from None
            with contextlib.suppress(FileNotFoundError):  # runs that use it keep it until they have ended
                (folder / digest).rename(folder / f"{TRASH}{secrets.token_hex(8)}")
            continue
        if (held := _held(folder / digest / "lock")) is None:
            continue  # the one that there was has been removed
        try:
            name = _name_file(folder, image)
            name.parent.mkdir(exist_ok=True)
            temporary = name.with_name(f".{secrets.token_hex(8)}")
            temporary.write_text(f"{digest}\n", encoding="utf-8")
            temporary.replace(name)
            return root
        finally:
            release(held)


def _read(folder: Path, digest: str) -> Root:
    path = folder / digest
    return Root(path / "rootfs", digest, _facts(path)["environment"])


def _facts(folder: Path) -> dict[str, Any]:
    """What `root.json` says. Raises `ValueError` if it is damaged."""
    facts = json.loads((folder / "root.json").read_text("utf-8"))
    try:
        variables = [*facts["environment"].items()]
        if isinstance(facts["bytes"], int) and all(isinstance(text, str) for pair in variables for text in pair):
            return dict(facts)
    except (KeyError, TypeError, AttributeError):
        pass
    raise ValueError("root.json lacks what it should say")


def _name_file(folder: Path, image: str) -> Path:
    return folder / "names" / f"{quote(untagged(image), safe='')}.txt"


def _names(folder: Path, digest: str) -> tuple[str, ...]:
    """The images that have a root."""
    found = []
    for path in sorted((folder / "names").glob("*.txt")):
        with contextlib.suppress(FileNotFoundError):
            if path.read_text("utf-8").strip() == digest:
                found.append(unquote(path.stem))
    return tuple(found)


def _is_lock(descriptor: int, path: Path) -> bool:
    """Whether an open file is the one that has the path now."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
