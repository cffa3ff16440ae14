"""An installation for the tests of a file that leave it as they found it; a fleet for those of several hosts."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents import write_agent
from tests.deployments.fleet import Fleet
from tests.deployments.installation import Running, installation
from tests.deployments.postgresql import new_database, postgresql
from tests.s3.fixtures import Bucket, clients_of


@pytest.fixture(scope="session", autouse=True)
def _home(own_home: Path) -> None:
    """Servers find their database."""


@pytest.fixture(scope="module")
def running(prefect_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Ends with the last test of a file: idle servers take a tenth of a core from the others."""
    folder = tmp_path_factory.mktemp("user")
    write_agent(folder / "of-a-user", "exit 0\n")
    # With queries every two seconds, its worker would end after a minute and a half without the server.
    with installation(folder / "up", prefect_database, PREFECT_WORKER_QUERY_SECONDS="10") as started:
        yield started


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A PostgreSQL server of the session's own, on a socket and a port of this machine; gives its URL."""
    with postgresql() as url:
        yield url


@pytest.fixture(scope="module")
def fleet(postgres: str, _server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A Prefect server on PostgreSQL and an S3 store, without workers: tests start those that they need."""
    bucket = Bucket(_server)
    folder = tmp_path_factory.mktemp("fleet")
    database = new_database(postgres, uuid.uuid4().hex)
    with pytest.MonkeyPatch.context() as patch, clients_of(bucket, patch), Fleet(folder, bucket, database) as started:
        yield started


@pytest.fixture(autouse=True)
def _nothing_of_a_fleet_remains(request: pytest.FixtureRequest) -> Iterator[None]:
    """Workers of a test do not take the attempts of the next one, nor the other way round, even if it fails."""
    yield
    if "fleet" in request.fixturenames:
        request.getfixturevalue("fleet").clear()
