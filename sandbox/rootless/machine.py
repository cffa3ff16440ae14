"""Whether this machine lets an ordinary user isolate agents with bubblewrap, and what its administrator can do."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

PROGRAM = "bwrap"
VERSION = (0, 8, 0)
"""The first version with the options that runs are started with."""
TRIAL = (
    *("--unshare-user", "--unshare-all", "--disable-userns", "--die-with-parent", "--cap-drop", "ALL"),
    *("--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"),
)
TRIAL_SECONDS = 30.0
INSTALL = "apt-get install bubblewrap, or without root: conda install -c conda-forge bubblewrap"
APPARMOR = (
    "ln -s /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && systemctl reload apparmor "
    "(package apparmor-profiles), or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
)
_FORBIDDEN = (
    ("user/max_user_namespaces", 0, "sysctl -w user.max_user_namespaces=15000"),
    ("kernel/unprivileged_userns_clone", 0, "sysctl -w kernel.unprivileged_userns_clone=1"),
    ("kernel/apparmor_restrict_unprivileged_userns", 1, APPARMOR),
)
"""Settings below /proc/sys, the values with which they forbid user namespaces, and what changes that."""


@dataclass(frozen=True)
class Problem:
    """Why this machine cannot isolate agents without a container engine."""

    message: str
    remedy: str
    """What to do, as a command or in words."""

    def __str__(self) -> str:
        return f"{self.message}: {self.remedy}"


def problem(settings: Path = Path("/proc/sys")) -> Problem | None:
    """Try to isolate a process; None if that works.

    Args:
        settings: where the kernel shows its settings.
    """
    program = shutil.which(PROGRAM)
    if program is None:
        return Problem("bubblewrap is not installed", INSTALL)
    if (version := installed_version(program)) is not None and version < VERSION:
        shown, needed = (".".join(map(str, each)) for each in (version, VERSION))
        return Problem(f"bubblewrap {shown} is too old, {needed} is needed", f"install a newer one ({INSTALL})")
    try:
        done = subprocess.run([program, *TRIAL], capture_output=True, text=True, timeout=TRIAL_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return Problem(f"bubblewrap cannot be tried ({error})", INSTALL)
    if done.returncode == 0:
        return None
    said = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1][:200]
    for name, forbidding, remedy in _FORBIDDEN:
        if _value(settings / name) == forbidding:
            return Problem(
                f"user namespaces are forbidden here ({name.replace('/', '.')}={forbidding}; {said})",
                f"as root: {remedy}",
            )
    if "proc" in said:
        remedy = "if this is a container, unmask its /proc: --security-opt systempaths=unconfined, procMount: Unmasked"
        return Problem(f"a new /proc cannot be mounted ({said})", remedy)
    remedy = (
        "this may be a container, or a policy of the machine: allow user namespaces to it, or use another --backend"
    )
    return Problem(f"bubblewrap cannot isolate here ({said})", remedy)


def installed_version(program: str) -> tuple[int, ...] | None:
    """The version of bubblewrap; None if it does not say."""
    try:
        answer = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=TRIAL_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", answer.stdout)
    return tuple(int(part or 0) for part in found.groups()) if found else None


def _value(path: Path) -> int | None:
    try:
        return int(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
