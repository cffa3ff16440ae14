"""What Prefect's UI only shows never fails the work, nor holds it up."""

from __future__ import annotations

import logging

import httpx
import pytest
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES

from storage.datasets.materialise import Progress
from tasks.split import _ProgressArtifact
from tasks.wiring.server import shown


def test_an_error_of_what_is_shown_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    before = PREFECT_CLIENT_MAX_RETRIES.value()
    logging.getLogger("prefect").addHandler(caplog.handler)
    with shown("the table of results"):
        assert PREFECT_CLIENT_MAX_RETRIES.value() < before, "the work is not held up"
        raise httpx.ConnectError("no server")
    assert PREFECT_CLIENT_MAX_RETRIES.value() == before
    assert "the table of results is not shown in the Prefect UI: no server" in caplog.text


def test_progress_that_cannot_be_shown_is_left_alone_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def create(*_: object, **__: object) -> None:
        tries.append(1)
        raise httpx.ConnectError("no server")

    monkeypatch.setattr("tasks.split.create_progress_artifact", create)
    bar = _ProgressArtifact("prepare digits v1")
    for files in range(100):
        bar.show(Progress(files, 100, 0, 0))
    assert len(tries) == 1
