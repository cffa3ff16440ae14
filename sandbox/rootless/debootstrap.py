"""The base image without a container engine or a registry: Debian with its own Python, made by mmdebstrap."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from sandbox.docker import build
from sandbox.errors import BuildError

SUITE = "bookworm"
PACKAGES = "python3,python3-venv,ca-certificates,curl,git"


def archive(suite: str, packages: str, folder: Path, on_line: Callable[[str], None]) -> Path:
    """Make an archive of a root with what the Dockerfile of the base image installs.

    An ordinary user needs ranges of subordinate ids (`/etc/subuid`), as packages have files of several users.

    Args:
        suite: Debian's release.
        packages: small or full.
        folder: an empty directory, for the archive and temporary files.
        on_line: called with every line that mmdebstrap prints.

    Returns:
        The archive's path.

    Raises:
        BuildError: it cannot be made.
    """
    if shutil.which("mmdebstrap") is None:
        raise BuildError("mmdebstrap is not installed: apt-get install mmdebstrap uidmap, or use another --from")
    requirements = build.BASE / f"{packages}.txt"
    python = 'chroot "$1" /opt/venv/bin/python -m pip install --no-cache-dir --disable-pip-version-check'
    hooks = [
        'chroot "$1" useradd --uid 1000 --no-create-home --home-dir /home --shell /bin/bash nonroot',
        'chroot "$1" python3 -m venv /opt/venv',
        f"upload {requirements} /opt/requirements.txt",
    ]
    secrets = {"pip.conf": "/etc/pip.conf", "certificates": "/etc/ssl/certs/ca-certificates.crt"}
    for name, path in build.secrets(folder).items():
        hooks.append(f"upload {path} {secrets[name]}")
    hooks += [
        f"{python} --requirement /opt/requirements.txt",
        'rm -f "$1/etc/pip.conf"; chroot "$1" update-ca-certificates --fresh',
    ]
    target = folder / "root.tar"
    command = [
        "mmdebstrap",
        f"--mode={'unshare' if os.getuid() else 'root'}",
        "--variant=minbase",
        f"--include={PACKAGES}",
    ]
    command += [f"--customize-hook={hook}" for hook in hooks]
    build.run([*command, suite, str(target)], f"Debian {suite} cannot be installed", on_line)
    return target
