"""The directory for temporary files, which is TMPDIR or /tmp: often small, because it is in memory, and easily full."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator

from common.errors import UserError
from common.units import data_size

MIN_FREE_BYTES = 16 << 20
"""Less than this is full: a Prefect server and an agent's services need some."""


def require_room() -> None:
    """Raise `UserError` if there is no directory for temporary files, or it is full."""
    try:
        folder = _folder()
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise UserError(f"temporary files cannot be written ({error.strerror}): set TMPDIR to a directory") from error
    if free < MIN_FREE_BYTES:
        raise UserError(
            f"{folder}, the directory for temporary files, is full ({data_size(free)} are free): make room, or set "
            "TMPDIR to a directory on a larger disk, and run the same command again"
        ).of_kind("disk full")


def _folder() -> str:
    named = os.environ.get("TMPDIR", "")  # Python avoids it if it is full, but other programs do not
    return named if os.path.isdir(named) else tempfile.gettempdir()  # noqa: PTH112  # of text


@contextlib.contextmanager
def named_in_errors() -> Iterator[None]:
    """Let an error of a full disk that names no file say that it may be the disk of temporary files."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT) or error.filename is not None:
            raise
        text = f"{error.strerror}, for the dataset or for temporary files in {_folder()} (TMPDIR)"
        raise OSError(error.errno, text) from error
