"""Create a file only if it does not exist, on any file system: this step decides which of two processes succeeds."""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
from pathlib import Path
from typing import Any

_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK}


def create(fs: Any, path: str, content: bytes, local: bool) -> bool:
    """Create a file. Returns False if it exists with other content.

    The content must be unique to the caller: a request that is repeated because its answer was lost finds the file that
    it has created itself.

    Args:
        fs: file system of fsspec.
        path: path on it.
        content: content of the file; at most a few MB.
        local: whether `fs` is the local file system.

    Raises:
        Exception: errors of the file system, if the file was not created as far as can be found out.
    """
    try:
        if local:
            _create_local(path, content)
        else:
            fs.pipe_file(path, content, mode="create")
    except Exception as error:  # stores report an existing file in different ways
        try:
            stored = fs.cat_file(path)
        except Exception as unreadable:
            if not isinstance(error, FileExistsError):  # the first answer says more than that to reading
                raise error from error.__cause__
            if isinstance(unreadable, FileNotFoundError):  # it was removed meanwhile
                return False
            raise
        return bool(stored == content)
    return True


def _create_local(path: str, content: bytes) -> None:
    """Link a complete draft, so that no reader sees a part; where there are no hard links, write the file in place."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(f"{path}.{uuid.uuid4().hex}.draft")
    draft.write_bytes(content)
    try:
        os.link(draft, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        with target.open("xb") as file:
            file.write(content)
    finally:
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()
