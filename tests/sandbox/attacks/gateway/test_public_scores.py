"""Attempts to learn more from public scores than they tell, or to ask more often than a run may.

What answers depend on, files that differ in one row, private rows, and days are tested in `tests/grading/feedback`, and
what agents leave as their final choice in `tests/tasks/test_run_feedback.py`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from common.settings import Settings, get_settings
from grading.feedback.public_scores import FILES, JOURNAL, PublicPart
from sandbox.backend import RunSpec
from sandbox.process.backend import ProcessBackend
from sandbox.services.run_services import RECORDS, RunServices
from sandbox.validation import service, upload
from storage.dataset import Dataset
from tasks.wiring import services as wiring
from tests import plain_http
from tests.sandbox.attacks.gateway.test_scorer import HOSTILE
from tests.stores import Store, put_dataset

Send = Callable[..., Any]


@pytest.fixture
def opened(
    make_spec: Callable[..., RunSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., tuple[Send, RunServices]]]:
    """Open the services of a run of digits with public scores, as the orchestrator does; also what asks them."""
    monkeypatch.setenv("MLEBENCH_SCRATCH", str(tmp_path / "scratch"))
    get_settings.cache_clear()
    store = Store(str(tmp_path / "store"))
    dataset: Dataset = put_dataset(store, "digits")
    sample = store.read(f"{store.prepared(dataset)}/public/sample_submission.csv")
    services: list[RunServices] = []

    def open_(name: str = "run", calls: int = 100) -> tuple[Send, RunServices]:
        spec = replace(make_spec("true"), competition_id="digits", workdir=tmp_path / name)
        public = PublicPart(0.3, "id", calls)
        opened = wiring.run_services(ProcessBackend(), spec, store, dataset, Settings(), public)
        services.append(opened.__enter__())

        def send(content: bytes = sample, **form: Any) -> Any:
            url = f"{opened.urls['public_score']}/public-score"
            return plain_http.post(url, files=form or {"file": content}, timeout=120)

        return send, opened

    yield open_
    for each in services:
        each.close()
    get_settings.cache_clear()


def records(tmp_path: Path, name: str) -> list[dict[str, Any]]:
    path = tmp_path / "run" / RECORDS / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_files_that_get_no_public_score(
    opened: Callable[..., tuple[Send, RunServices]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line says why, and nothing of the host or of answers; nothing is kept or counted, and others are served."""
    monkeypatch.setattr(wiring, "PUBLIC_SCORE_CALLS_PER_MINUTE", 1000)
    send, _ = opened()
    for content in HOSTILE.values():
        answer = send(content)
        assert answer.status_code in (400, 500), answer.text
        message = answer.json()["error"]
        assert len(message) < 600
        host = ("\n", str(tmp_path), "/tmp", "site-packages", "competitions/", ".py")
        assert not any(part in message for part in host)
    assert (send().json()["submission"], send().json()["calls_left"]) == (1, 98)
    folder = tmp_path / "run" / RECORDS
    assert sorted(path.name for path in (folder / FILES).iterdir()) == ["1.csv", "2.csv"]
    assert not list(folder.glob("upload-*"))


def test_the_services_learn_no_score_that_is_not_told(
    opened: Callable[..., tuple[Send, RunServices]], tmp_path: Path
) -> None:
    """Their process and its journal have what the agent is told. The time of an answer is one of a few."""
    send, _ = opened()
    began = time.monotonic()
    answer = send().json()
    assert time.monotonic() - began >= service.STEP_SECONDS
    assert answer.keys() == {"submission", "best", "improved", "calls_left"}
    (kept,), (call,) = records(tmp_path, JOURNAL), records(tmp_path, "public_score.jsonl")
    assert call.keys() - {"time", "size", "sha256", "verdict", "message", "seconds"} == answer.keys()
    assert answer["best"] == kept["told"] != kept["score"]


def test_more_public_scores_than_a_run_has(opened: Callable[..., tuple[Send, RunServices]], tmp_path: Path) -> None:
    """All at once, after a restart of the services, and by two runs of one agent, which share nothing."""
    send, services = opened(calls=3)
    with ThreadPoolExecutor(16) as pool:
        answers = [pool.submit(send) for _ in range(16)]
        codes = [answer.result().status_code for answer in answers]
    assert (codes.count(200), set(codes)) == (3, {200, 429})
    services.close()
    again, services = opened(calls=3)
    refused = again()
    assert refused.status_code == 429
    assert refused.json()["error"].startswith("Not scored: all 3 public scores of the last 24 hours are used up; try")
    assert services.counts()["public_score_calls"] == len(records(tmp_path, JOURNAL)) == 3
    other, _ = opened("other", calls=3)
    assert other().json()["calls_left"] == 2


def test_files_by_the_thousand(
    opened: Callable[..., tuple[Send, RunServices]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invalid files, which the limit of a day does not count, are limited by the minute, and not kept."""
    monkeypatch.setattr(wiring, "PUBLIC_SCORE_CALLS_PER_MINUTE", 1)
    send, _ = opened()
    assert [send(b"id,label\n").status_code for _ in range(3)] == [400, 429, 429]
    assert not (tmp_path / "run" / RECORDS / JOURNAL).exists()


def test_a_public_score_of_gigabytes(
    opened: Callable[..., tuple[Send, RunServices]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wiring, "SCORED_BYTES", 1000)
    send, _ = opened()
    for content in (bytes(1001), bytes(2001 + upload.FORM_BYTES)):
        assert send(content).json() == {"error": "the file is larger than 1000 bytes"}
    assert send(predictions=b"", truth=b"").status_code == 400
