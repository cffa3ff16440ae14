"""Podman's service for tests: an engine of our own, with its images and containers in a folder, removed at the end."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.definitions import BASE_IMAGE
from tests.waiting import until


@contextmanager
def service(image: Path) -> Iterator[str]:
    """Start the service, with this file as its base image; gives its URL for DOCKER_HOST."""
    folder = Path(tempfile.mkdtemp(prefix="podman-"))  # the path of a socket is short
    command = ["podman", f"--root={folder}/root", f"--runroot={folder}/run", f"--tmpdir={folder}/tmp"]
    command += ["--cgroup-manager=cgroupfs", "--events-backend=file", f"--network-config-dir={folder}/networks"]
    if not Path("/sys/fs/cgroup/cgroup.controllers").exists():  # crun does not run in every mixture of cgroup v1 and v2
        command.append("--runtime=runc")
    environment = {**os.environ, "HTTPS_PROXY": "http://user:secret@127.0.0.1:9"}
    url = f"unix://{folder}/sock"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "system", "service", "--time=0", url], env=environment, cwd=folder, stdout=log, stderr=log
        )
    try:
        until((folder / "sock").is_socket, may_yet=lambda: process.poll() is None, what="Podman's answer")
        subprocess.run([*command, "import", "--quiet", str(image), BASE_IMAGE], stdout=subprocess.DEVNULL, check=True)
        yield url
    finally:
        subprocess.run([*command, "rm", "--all", "--force", "--time=0"], capture_output=True, check=False)
        process.terminate()
        process.wait(60)
        shutil.rmtree(folder, ignore_errors=True)
