"""Attempts to harm or to read the host through the scorer, which reads two files of the agent's own."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from common.settings import Settings
from competitions import registry
from competitions.truth import truth_form
from grading.workers import GradingLimits, Scorer
from grading.workers.limits import GIB
from sandbox.backend import RunSpec
from sandbox.process.backend import ProcessBackend
from sandbox.services.run_services import RECORDS, RunServices, take_over
from sandbox.validation import service, upload
from storage.dataset import Dataset
from storage.store import Store
from tasks.wiring import services as wiring
from tests import plain_http

Send = Callable[..., Any]
GOOD = b"id,label\na,1\nb,2\nc,3\n"
LIMITS = GradingLimits(memory_bytes=GIB, read_seconds=20, grade_seconds=20, size_bytes=64 << 20)


@pytest.fixture
def opened(make_spec: Callable[..., RunSpec], tmp_path: Path) -> Iterator[Callable[..., tuple[Send, RunServices]]]:
    """Open the services of a run of digits with a scorer, as the orchestrator does; returns a function that asks."""
    services: list[RunServices] = []

    def open_(name: str = "run", **settings: Any) -> tuple[Send, RunServices]:
        spec = replace(make_spec("true"), competition_id="digits", workdir=tmp_path / name)
        spec = replace(spec, scorer=wiring.scorer_texts(registry.get("digits"), spec.data))
        dataset, store = Dataset("v1", "digits", "key"), Store(str(tmp_path / "no store"))
        limits = Settings(scorer_calls_per_minute=1000, **settings)
        opened = wiring.run_services(ProcessBackend(), spec, store, dataset, limits)
        services.append(opened.__enter__())

        def send(predictions: bytes = GOOD, truth: bytes = GOOD) -> Any:
            files = {"predictions": predictions, "truth": truth}
            return plain_http.post(f"{opened.urls['scorer']}/score", files=files, timeout=120)

        return send, opened

    yield open_
    for each in services:
        each.close()


@pytest.fixture
def scorer() -> Iterator[Scorer]:
    competition = registry.get("digits")
    with Scorer(competition, truth_form(competition, Path("nowhere")), "v1", LIMITS) as opened:
        yield opened


def calls(services: RunServices) -> list[dict[str, Any]]:
    return [json.loads(line) for line in services.files()["scorer.jsonl"].read_text().splitlines()]


def write(folder: Path, predictions: bytes = GOOD, truth: bytes = GOOD) -> tuple[Path, Path]:
    (folder / "predictions.csv").write_bytes(predictions)
    (folder / "truth.csv").write_bytes(truth)
    return folder / "predictions.csv", folder / "truth.csv"


HOSTILE = {
    "numbers that are none": b"id,label\na,nan\nb,inf\nc,-inf\n",
    "formulas": b"id,label\n=cmd|'/c calc'!A1,1\nb,=2+5\nc,@SUM(1)\n",
    "no text": bytes(range(256)) * 100,
    "UTF-16": "id,label\na,1\n".encode("utf-16"),
    "a NUL": b"id,label\na\0,1\n",
    "an open quote": b'id,label\n"a,1\nb,2\n',
    "ragged rows": b"id,label\na,1,2,3\nb\n",
    "no rows": b"id,label\n",
    "nothing": b"",
    "a path of the host": b"/etc/passwd\n",
    "a zip archive": b"PK\x03\x04" + bytes(1000),
    "a pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    "the same column twice": b"id,label,label\na,1,2\n",
    "a huge exponent": b"id,label\na,1e999999999\n",
    "huge integers": b"id,label\na," + b"9" * 5000 + b"\n",
    "unicode names": "id,läbel\u202e,\u0000\na,1,2\n".encode(),
    "twenty thousand columns": b",".join(b"c%d" % number for number in range(50_000)) + b"\n1\n",
    "a cell of 20 MB": b"id,label\n" + b"a" * (20 << 20) + b",1\n",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_files_that_are_no_predictions_or_truth(
    opened: Callable[..., tuple[Send, RunServices]], tmp_path: Path, what: str
) -> None:
    """Each gets an answer of one line, which names the file and nothing of the host, and the next request is served."""
    send, services = opened()
    for answer in (send(truth=HOSTILE[what]), send(predictions=HOSTILE[what]), send(HOSTILE[what], HOSTILE[what])):
        assert answer.status_code in (200, 400), answer.text
        if answer.status_code == 400:
            message = answer.json()["error"]
            assert re.match("(PREDICTIONS|TRUTH|PREDICTIONS or TRUTH|the grader fails on these files)", message), (
                message
            )
            assert "\n" not in message
            assert len(message) < 600
            assert not any(part in message for part in (str(tmp_path), "/tmp", "site-packages", "competitions/", ".py"))
    assert send().json() == {"score": 1.0}
    assert not list((tmp_path / "run" / RECORDS).glob("upload-*"))
    assert len(calls(services)) == 4


def test_a_truth_of_gigabytes(
    opened: Callable[..., tuple[Send, RunServices]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither file may be larger than a GiB, or than the disk of the run, whatever the other one is."""
    monkeypatch.setattr(wiring, "SCORED_BYTES", 1000)
    send, services = opened()
    for answer in (send(truth=bytes(1001)), send(predictions=bytes(1001)), send(bytes(1001), bytes(1001))):
        assert answer.status_code == 400
        assert " is larger than 1000 bytes" in answer.json()["error"]
    large = bytes(2001 + upload.FORM_BYTES)
    assert send(large).json() == {"error": "PREDICTIONS or TRUTH is larger than 1000 bytes"}
    assert send().json() == {"score": 1.0}
    assert [call["verdict"] for call in calls(services)] == ["invalid"] * 4 + ["valid"]
    assert not list((tmp_path / "run" / RECORDS).glob("upload-*"))


def test_rows_by_the_million_end_at_the_limits_of_a_worker(scorer: Scorer, tmp_path: Path) -> None:
    """A small file that is a large table, and one that takes long to parse."""
    small = replace(scorer.bounds, memory_bytes=64 << 20)
    scorer.bounds = small
    truth = b"id,label\n" + b"".join(b"%d,1\n" % number for number in range(3_000_000))
    verdict = scorer.score(*write(tmp_path, truth=truth))
    assert (verdict.outcome, verdict.message) == ("invalid", "TRUTH cannot be read as a table within 64 MiB of memory")
    assert scorer.score(*write(tmp_path)).score == 1.0


def test_time_is_limited(tmp_path: Path) -> None:
    competition = registry.get("digits")
    limits = replace(LIMITS, read_seconds=0.001)
    with Scorer(competition, truth_form(competition, Path("nowhere")), "v1", limits) as scorer:
        began = time.monotonic()
        verdict = scorer.score(*write(tmp_path))
        assert verdict.message == "TRUTH cannot be read as a table within 0.001 seconds"
        assert time.monotonic() - began < 20


def test_files_that_are_links_pipes_or_folders(scorer: Scorer, tmp_path: Path) -> None:
    """As a service that an agent took over could leave them between the upload and the reading."""
    secret = tmp_path / "secret.csv"
    secret.write_bytes(GOOD)
    for number, make in enumerate((lambda path: path.symlink_to(secret), os.mkfifo, lambda path: path.mkdir())):
        for name in ("predictions", "truth"):
            folder = tmp_path / f"{number}-{name}"
            folder.mkdir()
            predictions, truth = write(folder)
            changed = {"predictions": predictions, "truth": truth}[name]
            changed.unlink()
            make(changed)
            verdict = scorer.score(predictions, truth)
            assert verdict.outcome in ("invalid", "failed")  # what failed is not told to the agent
            assert verdict.outcome == "failed" or str(tmp_path) not in str(verdict.message)
    assert scorer.score(*write(tmp_path)).score == 1.0


def test_calls_by_the_dozen(opened: Callable[..., tuple[Send, RunServices]]) -> None:
    """One is scored at a time and few wait; others are refused, and counted as refused."""
    send, services = opened()
    with ThreadPoolExecutor(16) as pool:
        answers = [pool.submit(send) for _ in range(16)]
        codes = [answer.result().status_code for answer in answers]
    assert set(codes) == {200, 429}
    assert codes.count(200) >= service.MAX_WAITING
    assert services.counts()["scorer_calls"] == codes.count(200)
    assert services.counts()["validation_calls"] == 0


def test_the_number_of_calls_survives_a_restart_and_is_one_of_each_run(
    opened: Callable[..., tuple[Send, RunServices]],
) -> None:
    send, services = opened(scorer_calls=2)
    other, _ = opened("other", scorer_calls=2)
    assert [send().status_code for _ in range(3)] == [200, 200, 429]
    assert send().json() == {"error": "Not scored: all 2 calls of the scorer of this run are used up."}
    services.close()
    again, _ = opened(scorer_calls=2)
    assert again().status_code == 429
    assert other().status_code == 200
    assert services.allowance.scorer_calls == 2
    assert services.remaining.scorer_calls == 0


def test_a_form_that_is_not_the_two_files(opened: Callable[..., tuple[Send, RunServices]]) -> None:
    _, services = opened()
    url = f"{services.urls['scorer']}/score"
    for files in ({"predictions": GOOD}, {"file": GOOD}, {"predictions": GOOD, "truth": GOOD, "more": GOOD}):
        answer = plain_http.post(url, files=files, timeout=60)
        assert answer.status_code == 400, answer.text
    assert plain_http.post(url, data={"predictions": "/etc/passwd", "truth": "/etc/passwd"}).status_code == 400
    named = {"predictions": ("../../../etc/cron.d/x", GOOD), "truth": ("/etc/shadow", GOOD)}
    assert plain_http.post(url, files=named, timeout=60).json() == {"score": 1.0}


def test_a_run_without_validations_has_its_scorer(opened: Callable[..., tuple[Send, RunServices]]) -> None:
    send, services = opened(validation_calls=0)
    assert send().json() == {"score": 1.0}
    assert services.validation_url is None
    assert plain_http.post(f"{services.urls['scorer']}/validate", files={"file": GOOD}).status_code == 404
    assert (services.allowance.validation_calls, services.allowance.scorer_calls) == (None, 2000)


def test_a_run_that_continues_elsewhere_goes_on_counting(
    opened: Callable[..., tuple[Send, RunServices]], tmp_path: Path
) -> None:
    send, services = opened(scorer_calls=2)
    send()
    services.close()
    take_over(tmp_path / "elsewhere", tmp_path / "run" / RECORDS, "")
    again, there = opened("elsewhere", scorer_calls=2)
    assert there.remaining.scorer_calls == 1
    assert [again().status_code for _ in range(2)] == [200, 429]
