"""A user without rights, for tests that begin as root; elsewhere, the user who runs the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
_USER = 65534
BECOME = () if os.getuid() else ("setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups")
"""What stands before a command of the user."""
JOB = () if os.getuid() else (f"--uid={_USER}", f"--gid={_USER}")
"""Options of sbatch for a job of the user."""


def own(*paths: Path) -> None:
    """Give files and folders to the user."""
    for path in paths:
        if not os.getuid():
            os.chown(path, _USER, _USER)


def interpreter(folder: Path) -> str:
    """Make an environment with our packages, which the user can read even if ours is in the home of root."""
    system = Path(f"/usr/bin/python3.{sys.version_info.minor}")
    base = sys.executable if os.getuid() or not system.exists() else system
    subprocess.run([base, "-m", "venv", "--without-pip", folder], check=True)
    [packages] = folder.glob("lib/python3*/site-packages")
    (packages / "ours.pth").write_text(
        "\n".join([*(path for path in sys.path if path.endswith("-packages")), str(ROOT)])
    )
    # Python 3.11 before 3.11.3 needs a package of that name, which our interpreter does not.
    (packages / "async_timeout.py").write_text("from asyncio import timeout\n")
    return str(folder / "bin" / "python")
