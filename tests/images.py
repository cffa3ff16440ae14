"""Images that tests run containers of. Each is built once on a machine, with whatever the machine has."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from sandbox.definitions import BASE_IMAGE
from sandbox.docker.build import BuildError, build_base

ROOT = Path(__file__).parents[1]
DEBIAN = "mlebench-debian:bookworm"
"""Debian with its own Python, which is built without a registry of images."""


def exists(image: str) -> bool:
    """Whether the Docker engine has an image."""
    inspected = subprocess.run(["docker", "image", "inspect", image], capture_output=True, check=False)
    return inspected.returncode == 0


@cache
def without_base_image() -> str | None:
    """Build the base image of agents, unless there is one; returns why that is not possible, or None."""
    with _one_at_a_time():
        if exists(BASE_IMAGE):
            return None
        if without_debian() is None:
            build_base(base=DEBIAN)
            return None
        try:
            build_base()
        except BuildError as error:
            return f"the base image cannot be built: {error}"
    return None


@cache
def without_debian() -> str | None:
    """Make the image of Debian, unless there is one; returns why that is not possible, or None."""
    if exists(DEBIAN):
        return None
    if os.geteuid() or shutil.which("debootstrap") is None:
        return "an image of Debian needs root and debootstrap"
    subprocess.run([ROOT / "deployments" / "base_image.sh", DEBIAN], check=True)
    return None


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Wait for the other workers of the session, which may build the same."""
    with (Path(tempfile.gettempdir()) / f"mlebench-images-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
