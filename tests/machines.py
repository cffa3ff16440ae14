"""File systems of other machines: without links, without locks, mounted `noexec`; and users that nobody knows."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.disks import mounted

_SHIM = """
#define _GNU_SOURCE
#include <errno.h>
#define REFUSE(name, arguments, number) int name arguments { errno = number; return -1; }
#ifdef LINKS
REFUSE(link, (const char *from, const char *to), EPERM)
REFUSE(linkat, (int a, const char *from, int b, const char *to, int flags), EPERM)
REFUSE(symlink, (const char *from, const char *to), EPERM)
REFUSE(symlinkat, (const char *from, int a, const char *to), EPERM)
#endif
#ifdef LOCKS
REFUSE(flock, (int file, int operation), ENOSYS)
#endif
"""


def without(what: str, folder: Path) -> dict[str, str]:
    """Variables of a process whose file systems have no LINKS, or no LOCKS, as a library before the system's says."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    library = folder / f"without-{what}.so"
    (folder / "shim.c").write_text(_SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", f"-D{what}", "-o", library, folder / "shim.c"], check=True)
    return {"LD_PRELOAD": str(library)}


def unknown_user() -> list[str]:
    """What comes before a command that runs as user 1234, who is not in the list of users."""
    prefix = ["unshare", "--user", "--map-user=1234", "--map-group=1234"]
    tried = subprocess.run([*prefix, "id", "-u"], capture_output=True, text=True, check=False)
    if tried.stdout.strip() != "1234":
        pytest.skip(f"no other user: {tried.stderr.strip()}")
    return prefix


@pytest.fixture
def noexec_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk from which nothing can be executed."""
    with mounted(tmp_path / "noexec", "noexec,size=200m") as folder:
        yield folder
