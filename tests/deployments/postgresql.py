"""A PostgreSQL server of its own, for tests and benchmarks."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from deployments.background import free_port


def binaries() -> Path | None:
    """The folder of the programs of the newest installed server; None without PostgreSQL."""
    found = max(Path("/usr/lib/postgresql").glob("*/bin/initdb"), default=None)
    return found and found.parent


@contextlib.contextmanager
def postgresql() -> Iterator[str]:
    """Run a server on a port of this machine during the block; yields its URL.

    Raises `FileNotFoundError` if PostgreSQL is not installed.
    """
    port = free_port()
    # It refuses to run as root, and another user may not enter folders that root has made.
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    data = Path(tempfile.mkdtemp(prefix="mlebench-pg-"))
    if user:
        shutil.chown(data, "postgres")
    control: list[str | Path] = [*user, _binary("pg_ctl"), "-D", data, "-w", "-l", data / "server.log"]
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={data}"
    try:
        make: list[str | Path] = [*user, _binary("initdb"), "-D", data, "-U", "prefect", "-A", "trust"]
        subprocess.run(make, check=True, cwd="/", stdout=subprocess.DEVNULL)
        subprocess.run([*control, "-o", options, "start"], check=True, cwd="/", stdout=subprocess.DEVNULL)
        yield f"postgresql://prefect@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], check=False, cwd="/", stdout=subprocess.DEVNULL)
        shutil.rmtree(data)


def new_database(url: str, name: str) -> str:
    """Create a database on the server of this URL; returns its URL."""
    server, _, _ = url.rpartition("/")
    subprocess.run([_binary("createdb"), "--maintenance-db", url, name], check=True)
    return f"{server}/{name}"


def _binary(name: str) -> Path:
    if (folder := binaries()) is None:
        raise FileNotFoundError("PostgreSQL is not installed (Debian: postgresql)")
    return folder / name
