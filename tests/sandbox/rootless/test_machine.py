"""A machine that cannot isolate agents says why, and what its administrator can do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.rootless.machine import problem


def bubblewrap(folder: Path, *, version: str = "0.9.0", says: str = "", code: int = 0) -> None:
    """A program on the PATH that behaves like bubblewrap on such a machine."""
    folder.mkdir(exist_ok=True)
    program = folder / "bwrap"
    program.write_text(
        f"#!/bin/sh\n[ \"$1\" = --version ] && {{ echo 'bubblewrap {version}'; exit 0; }}\n"
        f"echo '{says}' >&2; exit {code}\n"
    )
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("setting", "value", "says", "message", "remedy"),
    [
        (
            "user/max_user_namespaces",
            0,
            "No space left on device",
            "max_user_namespaces=0",
            "user.max_user_namespaces=15",
        ),
        (
            "kernel/unprivileged_userns_clone",
            0,
            "Operation not permitted",
            "userns_clone=0",
            "unprivileged_userns_clone=1",
        ),
        (
            *("kernel/apparmor_restrict_unprivileged_userns", 1, "bwrap: setting up uid map: Permission denied"),
            *("apparmor_restrict_unprivileged_userns=1; bwrap: setting up uid map", "bwrap-userns-restrict"),
        ),
        (
            "x/y",
            1,
            "bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
            "new /proc",
            "systempaths=unconfined",
        ),
        ("x/y", 1, "bwrap: No permissions to create a new namespace", "No permissions", "allow user namespaces"),
    ],
)
def test_namespaces_are_forbidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, value: int, says: str, message: str, remedy: str
) -> None:
    bubblewrap(tmp_path / "bin", says=says.replace("'", "'\\''"), code=1)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    path = tmp_path / "sys" / setting
    path.parent.mkdir(parents=True)
    path.write_text(f"{value}\n")
    found = problem(tmp_path / "sys")
    assert found is not None
    assert message in found.message
    assert remedy in found.remedy
    assert "\n" not in str(found)


def test_bubblewrap_is_missing_too_old_or_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    found = problem()
    assert found is not None
    assert "not installed" in found.message
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.defpath}")
    bubblewrap(tmp_path / "bin", version="0.4.1")
    found = problem()
    assert found is not None
    assert "bubblewrap 0.4.1 is too old, 0.8.0 is needed" in found.message
    assert "conda install" in found.remedy
    bubblewrap(tmp_path / "bin")
    assert problem() is None


@pytest.mark.service("rootless")
def test_a_kernel_that_allows_no_namespaces_any_more() -> None:
    say = f"exec {sys.executable} -c 'from sandbox.rootless.machine import problem; print(problem())'"
    command = ["unshare", "--user", "--map-root-user", "sh", "-c", f"echo 0 >/proc/sys/user/max_user_namespaces; {say}"]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=True)
    assert "user.max_user_namespaces=0; bwrap: " in done.stdout
    assert done.stdout.endswith("as root: sysctl -w user.max_user_namespaces=15000\n")
