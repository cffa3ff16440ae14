"""One installation for the tests of this folder that leave it as they found it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from deployments.background import free_port
from tests.deployments.fleet import Fleet
from tests.deployments.installation import Running, installation
from tests.s3.fixtures import Bucket, clients_of
from tests.s3.radosgw import missing


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with installation(tmp_path_factory.mktemp("up")) as started:
        yield started


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A PostgreSQL server of the session's own, on a socket and a port of this machine; gives its URL."""
    binaries, port = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1], free_port()
    # It refuses to run as root, and another user may not enter pytest's own folders.
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    data = Path(tempfile.mkdtemp(prefix="mlebench-pg-"))
    if user:
        shutil.chown(data, "postgres")
    control: list[str | Path] = [*user, binaries / "pg_ctl", "-D", data, "-w", "-l", data / "server.log"]
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={data}"
    try:
        initdb: list[str | Path] = [*user, binaries / "initdb", "-D", data, "-U", "prefect", "-A", "trust"]
        subprocess.run(initdb, check=True, cwd="/")
        subprocess.run([*control, "-o", options, "start"], check=True, cwd="/")
        yield f"postgresql://prefect@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], check=False, cwd="/")
        shutil.rmtree(data)


@pytest.fixture(scope="module")
def fleet(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A Prefect server and an S3 store, without workers: tests start those that they need."""
    with _fleet(request, tmp_path_factory.mktemp("fleet")) as started:
        yield started


@pytest.fixture(scope="module")
def fleet_on_postgresql(
    postgres: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Fleet]:
    """The same on PostgreSQL."""
    with _fleet(request, tmp_path_factory.mktemp("fleet-pg"), postgres) as started:
        yield started


@contextlib.contextmanager
def _fleet(request: pytest.FixtureRequest, folder: Path, database: str | None = None) -> Iterator[Fleet]:
    bucket = Bucket(request.getfixturevalue("_radosgw" if missing() is None else "_moto"))
    with pytest.MonkeyPatch.context() as patch, clients_of(bucket, patch), Fleet(folder, bucket, database) as started:
        yield started


@pytest.fixture(autouse=True)
def _no_worker_of_a_fleet_remains(request: pytest.FixtureRequest) -> Iterator[None]:
    """Workers of a test do not take the attempts of the next one, even if it fails."""
    yield
    for name in ("fleet", "fleet_on_postgresql"):
        if name in request.fixturenames:
            request.getfixturevalue(name).stop_workers()
