"""What holds for agents as processes holds for those in namespaces, too, which have the same supervisor."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["process", pytest.param("rootless", marks=pytest.mark.service("rootless"))])
def backend_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)
