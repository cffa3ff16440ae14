"""One installation for the tests of this folder that leave it as they found it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.deployments.installation import Running, installation


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with installation(tmp_path_factory.mktemp("up")) as started:
        yield started
