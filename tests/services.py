"""Services that tests use for real: where one is missing, its tests are skipped, or fail if all are required."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable

import pytest

from tests import readers, roots, slurm
from tests.deployments.postgresql import binaries
from tests.docs import site
from tests.s3 import radosgw as s3_server

REQUIRED = os.environ.get("MLEBENCH_REQUIRE_SERVICES") == "1"
WITHOUT = os.environ.get("MLEBENCH_WITHOUT", "").split()
"""Services that may be missing nevertheless."""


def _chromium() -> str | None:
    return None if shutil.which("chromium") else "chromium is not installed"


def _docker() -> str | None:
    if shutil.which("docker") is None:
        return "docker is not installed"
    answer = subprocess.run(["docker", "version", "--format", "{{.Server.Version}}"], capture_output=True, check=False)
    return None if answer.returncode == 0 else "no Docker engine answers"


def _podman() -> str | None:
    return None if shutil.which("podman") else "podman is not installed"


def _postgres() -> str | None:
    return None if binaries() else "PostgreSQL is not installed (Debian: postgresql)"


# name -> function that says why the service is missing, None if it is there
SERVICES: dict[str, Callable[[], str | None]] = {
    "docker": _docker,
    "podman": _podman,
    "rootless": roots.missing,
    "chromium": _chromium,
    "s3": s3_server.missing,
    "postgres": _postgres,
    "slurm": slurm.missing,
    "readers": readers.missing,
    "inspect-port": readers.missing_inspect_port,
    "openenv": readers.missing_openenv,
    "docs": site.missing,
}


ISOLATING = [pytest.param(name, marks=pytest.mark.service(name)) for name in ("docker", "rootless")]
"""The backends that isolate, as the values of a parameter, and all backends."""
BACKENDS = ["process", *ISOLATING]


def skip_without(reason: str | None) -> None:
    """Skip the test, or fail it where services are required, if there is a reason why something is missing."""
    if reason is None:
        return
    if REQUIRED:
        pytest.fail(f"{reason}, and MLEBENCH_REQUIRE_SERVICES=1", pytrace=False)
    pytest.skip(reason)
