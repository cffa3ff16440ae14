"""Attempts to fill the operator's disk, or to occupy the checks, through the validation service."""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from common.settings import Settings
from sandbox.backend import RunSpec
from sandbox.limits import ValidationLimits
from sandbox.process.backend import ProcessBackend
from sandbox.services.run_services import RECORDS, RunServices
from sandbox.validation import service, upload
from sandbox.validation.checker import Check
from storage.dataset import Dataset
from storage.store import Store
from tasks.wiring.services import run_services
from tests import plain_http
from tests.sandbox.validation.test_validation import ScriptedCheck, ask
from tests.waiting import until

SUBMISSION = 400_000


@pytest.mark.parametrize(("disk", "largest"), [(100_000, 100_000), (None, SUBMISSION), (10_000_000, SUBMISSION)])
def test_an_upload_larger_than_the_disk_of_the_run(
    make_spec: Callable[..., RunSpec], tmp_path: Path, disk: int | None, largest: int
) -> None:
    """Uploads lie beside the home of the run, where its disk limit does not count them."""
    spec = make_spec("true", disk_bytes=disk, submission_bytes=SUBMISSION)
    dataset = Dataset("v1", "spaceship-titanic", "key")
    content = b"a" * (largest + upload.FORM_BYTES + 1)
    with run_services(ProcessBackend(), spec, Store(str(tmp_path / "store")), dataset, Settings()) as services:
        answer = plain_http.post(f"{services.validation_url}/validate", files={"file": content}, timeout=60)
        assert answer.json()["result"].startswith("Submission invalid! the file is larger than ")
        assert not list((spec.workdir / RECORDS).glob("upload-*"))


def test_half_an_upload_that_is_held_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "UPLOAD_SECONDS", 0.5)
    with RunServices(tmp_path, checks={"validation": Check(ScriptedCheck(), ValidationLimits())}) as services:
        url = httpx.URL(services.validation_url or "")
        with socket.create_connection((url.host, url.port or 0), timeout=30) as held:
            held.sendall(
                b"POST /validate HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=b\r\n"
                b"Content-Length: 100000\r\n\r\n--b\r\n"
            )
            assert ask(services).json() == {"result": "Submission is valid."}
            assert held.recv(12) == b"HTTP/1.1 400"
        assert not list((tmp_path / RECORDS).glob("upload-*"))


def test_uploads_by_the_dozen(tmp_path: Path) -> None:
    """One is checked at a time, and few wait: each takes as much disk as a submission may have."""
    check = ScriptedCheck()
    check.open.clear()
    with RunServices(tmp_path, checks={"validation": Check(check, ValidationLimits())}) as services:
        with ThreadPoolExecutor(12) as pool:
            asked = [pool.submit(ask, services) for _ in range(12)]
            until(lambda: sum(each.done() for each in asked) == 12 - service.MAX_WAITING - 1)
            assert len(list((tmp_path / RECORDS).glob("upload-*"))) == 1
            check.open.set()
        assert {each.result().status_code for each in asked} == {200, 429}
    assert check.most_at_once == 1
