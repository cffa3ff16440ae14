"""Linux namespaces: a process joins the network of a run, or gives up root once it has mounted what the run needs."""

from __future__ import annotations

import ctypes
import fcntl
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from sandbox.process.processes import die_with_parent

STAGE = "/tmp"  # noqa: S108
"""Where the sources of mounts are for a user who could not reach them."""
_NEW_MOUNTS, _NEW_USER, _NEW_NETWORK = 0x00020000, 0x10000000, 0x40000000  # linux/sched.h
_NOSUID, _NODEV, _BIND, _REC, _PRIVATE = 2, 4, 4096, 16384, 1 << 18  # linux/mount.h
_OWNER = 0xB701
"""The request to ioctl(2) for the user namespace that a namespace belongs to, NS_GET_USERNS in linux/nsfs.h."""


def join_network(pid: int) -> None:
    """Move this process, which has one thread, into the network of another one. Its files stay those of this machine.

    Raises:
        OSError: the other process has ended, or its namespace belongs to another user.
    """
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    for namespace, kind in ((fcntl.ioctl(network, _OWNER), _NEW_USER), (network, _NEW_NETWORK)):
        _checked("setns", namespace, kind)
        os.close(namespace)


def become(user: int, sources: Sequence[str]) -> None:
    """Give up root for an ordinary user, who finds files and folders of root at `STAGE`, by their number.

    The user needs no access to the folders above them. The mounts are those of this process only.

    Raises:
        OSError: one of them does not exist, or this process is not root.
    """
    _checked("unshare", _NEW_MOUNTS)
    _mount(None, "/", None, _REC | _PRIVATE)
    opened = [os.open(source, os.O_PATH) for source in sources]
    _mount("tmpfs", STAGE, "tmpfs", _NOSUID | _NODEV, "mode=755")
    for number, descriptor in enumerate(opened):
        target = Path(STAGE, str(number))
        target.mkdir() if stat.S_ISDIR(os.fstat(descriptor).st_mode) else target.touch()
        _mount(f"/proc/self/fd/{descriptor}", str(target), None, _BIND | _REC)
        os.close(descriptor)
    give_up_root(user)
    die_with_parent()  # the kernel forgets it with the user


def give_up_root(user: int) -> None:
    """Become an ordinary user, for good."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    texts = [text.encode() if text is not None else None for text in (source, target, kind)]
    _checked("mount", *texts, ctypes.c_ulong(flags), options.encode() if options else None)


def _checked(call: str, *arguments: object) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library[call](*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
