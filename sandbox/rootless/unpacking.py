"""Unpack the layers of an image, which may be hostile, into a directory that becomes the root of agents.

Every folder is opened below the open folder that contains it, and links on the way are resolved as in a chroot, so that
nothing is written outside of the directory. Device files and pipes are left out. Owners, set-user-id bits and
capabilities are not taken over: everything belongs to the user who unpacks it, nobody else may write to it, and agents
see it read-only.
"""

from __future__ import annotations

import contextlib
import math
import os
import stat
import tarfile
from collections.abc import Sequence
from typing import IO

from common import trees

WHITEOUT, OPAQUE = ".wh.", ".wh..wh..opq"
"""Prefix of the name of a file that removes the file of lower layers, and the name of one that empties its folder."""
MAX_DEPTH, MAX_LINKS = 256, 40
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Unusable(ValueError):
    """An archive that cannot be unpacked; the message is a part of a line."""


def unpack(layer: IO[bytes], top: int) -> None:
    """Unpack an uncompressed tar archive over what lower layers have put into a directory.

    Args:
        layer: the archive; it is read to its end.
        top: descriptor of the directory.

    Raises:
        Unusable: the archive is damaged, or has an entry that cannot be created.
        OSError: the disk is full, or cannot be written to.
    """
    touched: set[str] = set()  # by this layer, whose whiteouts are about lower layers only
    try:
        with tarfile.open(fileobj=layer, mode="r|") as archive, contextlib.closing(_Folders(top)) as folders:
            for member in archive:
                parts = [part for part in member.name.split("/") if part not in ("", ".")]
                if ".." in parts or len(parts) > MAX_DEPTH or "\0" in member.name:
                    raise Unusable(f"it has an entry {member.name[:100]!r}, which leads out of it or is too deep")
                if not parts:
                    continue
                name, folder = parts[-1], folders.open(parts[:-1])
                if name == OPAQUE:
                    _empty(folder, "/".join(parts[:-1]), touched)
                elif name.startswith(WHITEOUT):
                    hidden = name.removeprefix(WHITEOUT)
                    if hidden in ("", ".", ".."):
                        raise Unusable(f"it has a whiteout {member.name[:100]!r} without a name")
                    if "/".join([*parts[:-1], hidden]) not in touched:
                        trees.remove(hidden, folder, math.inf)
                else:
                    _create(archive, member, name, folder, folders)
                    touched.update("/".join(parts[:count]) for count in range(1, len(parts) + 1))
        while layer.read(trees.CHUNK):  # what follows the end of the archive belongs to its digest
            pass
    except Unusable:
        raise
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
        raise Unusable(f"it is damaged ({error})") from error


class _Folders:
    """Opens folders below `top`, and keeps the last one open, because archives list a folder's entries together."""

    def __init__(self, top: int) -> None:
        self._top = top
        self._last: tuple[list[str], int] | None = None

    def open(self, parts: list[str]) -> int:
        """Descriptor of a folder, which is made if it is missing; open until the next call."""
        if self._last is None or self._last[0] != parts:
            self.close()
            self._last = (parts, self._resolved(parts))
        return self._last[1]

    def close(self) -> None:
        """Close the last folder."""
        if self._last is not None:
            os.close(self._last[1])
            self._last = None

    def _resolved(self, parts: Sequence[str]) -> int:
        """A new descriptor of a folder; links are resolved as if `top` were the root."""
        waiting, opened, links = list(reversed(parts)), [os.dup(self._top)], 0
        try:
            while waiting:
                name = waiting.pop()
                if name in ("", "."):
                    continue
                if name == "..":
                    if len(opened) > 1:
                        os.close(opened.pop())
                    continue
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=opened[-1])
                if not stat.S_ISLNK(os.stat(name, dir_fd=opened[-1], follow_symlinks=False).st_mode):
                    opened.append(os.open(name, trees.FOLDER, dir_fd=opened[-1]))
                    continue
                target, links = os.readlink(name, dir_fd=opened[-1]), links + 1
                if links > MAX_LINKS or len(waiting) > MAX_DEPTH:
                    raise Unusable(f"it has a circle of links at {'/'.join(parts)[:100]!r}")
                if target.startswith("/"):
                    while len(opened) > 1:
                        os.close(opened.pop())
                waiting += reversed(target.split("/"))
            return opened.pop()
        except NotADirectoryError:
            raise Unusable(f"it has an entry below {'/'.join(parts)[:100]!r}, which is no folder") from None
        finally:
            for descriptor in opened:
                os.close(descriptor)


def _create(archive: tarfile.TarFile, member: tarfile.TarInfo, name: str, folder: int, folders: _Folders) -> None:
    """Create the entry in an open folder, in place of what a lower layer has there."""
    if member.isdir():
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=folder)
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
        with trees.opened_folder(name, folder) as inner:
            os.fchmod(inner, member.mode & 0o755 | stat.S_IRWXU)
        return
    if not (member.isfile() or member.issym() or member.islnk()):
        return
    if member.islnk():
        _link(member, name, folder, folders)
        return
    trees.remove(name, folder, math.inf)
    if member.issym():
        os.symlink(member.linkname, name, dir_fd=folder)
        return
    descriptor = os.open(name, _CREATE, 0o600, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        content = archive.extractfile(member)
        assert content is not None
        while chunk := content.read(trees.CHUNK):
            file.write(chunk)
        file.flush()
        os.fchmod(descriptor, member.mode & 0o755 | stat.S_IRUSR | stat.S_IWUSR)
        os.utime(descriptor, (member.mtime, member.mtime))  # Python compares it with that in compiled modules


def _link(member: tarfile.TarInfo, name: str, folder: int, folders: _Folders) -> None:
    """Create a hard link to an entry of the archive, or of a lower layer."""
    parts = [part for part in member.linkname.split("/") if part not in ("", ".")]
    if not parts or ".." in parts:
        raise Unusable(f"it has a link {member.name[:100]!r} that leads out of it")
    kept = os.dup(folder)  # opening the other folder closes this one
    try:
        target_folder = folders.open(parts[:-1])
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(
                os.stat(name, dir_fd=kept, follow_symlinks=False),
                os.stat(parts[-1], dir_fd=target_folder, follow_symlinks=False),
            ):
                return
        trees.remove(name, kept, math.inf)
        os.link(parts[-1], name, src_dir_fd=target_folder, dst_dir_fd=kept, follow_symlinks=False)
    except FileNotFoundError:
        raise Unusable(f"it has a link {member.name[:100]!r} to a file that it does not have") from None
    finally:
        os.close(kept)


def _empty(folder: int, path: str, touched: set[str]) -> None:
    """Remove what lower layers have put into a folder."""
    for name in os.listdir(folder):
        inner_path = f"{path}/{name}" if path else name
        if inner_path not in touched:
            trees.remove(name, folder, math.inf)
        elif stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            with trees.opened_folder(name, folder) as inner:
                _empty(inner, inner_path, touched)
