"""The validation service says whether a file is valid, or why not, and nothing else, whatever it is sent."""

from __future__ import annotations

import hashlib
import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from sandbox.backend import RunSpec, ServiceAddresses
from sandbox.limits import ValidationLimits
from sandbox.services.run_services import RECORDS, RunServices
from sandbox.validation import service, upload
from sandbox.validation.checker import Check, Verdict
from tests import plain_http
from tests.waiting import until

GOOD = b"id,label\n1,0\n2,1\n"


class ScriptedCheck:
    """Valid is what begins as `GOOD` does; keeps what it was given."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.closed = 0
        self.pause = 0.0
        self.open = threading.Event()
        """Checks wait for it."""
        self.open.set()
        self.at_once = self.most_at_once = 0

    def __call__(self, submission: Path) -> Verdict:
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        time.sleep(self.pause)
        assert self.open.wait(120)
        self.seen.append(submission.read_bytes())
        self.at_once -= 1
        if b"boom" in self.seen[-1]:
            raise RuntimeError("the answers are 7 and 8")
        if b"bug" in self.seen[-1]:
            return Verdict("failed", "the answers are 7 and 8")
        good = self.seen[-1].startswith(b"id,label")
        return Verdict("valid") if good else Verdict("invalid", "The submission lacks `id`.")

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def check() -> ScriptedCheck:
    return ScriptedCheck()


@pytest.fixture
def opened(check: ScriptedCheck, tmp_path: Path) -> Iterator[Callable[..., RunServices]]:
    """Open a validation service; keyword arguments are limits."""
    services: list[RunServices] = []

    def open_(reach: ServiceAddresses | None = None, **limits: Any) -> RunServices:
        limits = {"calls_per_minute": 1000, **limits}
        made = RunServices(tmp_path / "run", reach, checks={"validation": Check(check, ValidationLimits(**limits))})
        services.append(made.__enter__())
        return made

    yield open_
    for each in services:
        each.close()


def ask(services: RunServices, content: bytes = GOOD, **options: Any) -> httpx.Response:
    return plain_http.post(f"{services.validation_url}/validate", files={"file": content}, timeout=30, **options)


def log(services: RunServices) -> list[dict[str, Any]]:
    return [json.loads(line) for line in services.files()["validation.jsonl"].read_text().splitlines()]


def test_a_page_of_others_does_not_use_the_services(opened: Callable[..., RunServices], check: ScriptedCheck) -> None:
    """The port is one of the operator's machine, and so of all pages in the operator's browser."""
    services = opened()
    rebound = {"Host": "evil.test", "Origin": "http://evil.test"}
    for foreign in ({"Origin": "http://evil.test"}, {"Origin": "null"}, rebound):
        assert ask(services, headers=foreign).status_code == 403
    assert check.seen == []
    assert ask(services, headers={"Origin": services.validation_url}).status_code == 200


def test_valid_invalid_and_health(opened: Callable[..., RunServices], check: ScriptedCheck) -> None:
    services = opened()
    assert plain_http.get(f"{services.validation_url}/health").json() == {"status": "running"}
    assert ask(services).json() == {"result": "Submission is valid."}
    assert ask(services, b"x\n1\n").json() == {"result": "Submission invalid! The submission lacks `id`."}
    assert check.seen == [GOOD, b"x\n1\n"]
    first, second = log(services)
    assert first.keys() == {"time", "size", "sha256", "verdict", "message", "seconds"}
    assert (first["size"], first["sha256"]) == (len(GOOD), hashlib.sha256(GOOD).hexdigest())
    assert (first["verdict"], second["verdict"]) == ("valid", "invalid")
    assert services.counts()["validation_calls"] == 2


@pytest.mark.parametrize("content", [b"boom", b"bug"])
def test_what_goes_wrong_on_our_side_says_nothing(opened: Callable[..., RunServices], content: bytes) -> None:
    services = opened()
    response = ask(services, content)
    assert response.status_code == 500
    assert "error on our side" in response.json()["error"]
    assert "7 and 8" not in response.text + services.files()["validation.jsonl"].read_text()


def test_answers_come_in_steps_of_time(opened: Callable[..., RunServices], check: ScriptedCheck) -> None:
    services = opened()
    quickest = []
    for check.pause in (0.0, 0.2, 0.35):
        for _ in range(3):
            ask(services)
        quickest.append(min(record["seconds"] for record in log(services)[-3:]))
    assert max(quickest) - min(quickest) < 0.15
    assert min(quickest) >= service.STEP_SECONDS


def test_the_number_of_calls_is_limited_and_survives_a_restart(opened: Callable[..., RunServices]) -> None:
    services = opened(calls=3)
    assert [ask(services).status_code for _ in range(2)] == [200, 200]
    url = services.validation_url
    services.close()
    services = opened(calls=3)
    assert services.validation_url == url
    assert [ask(services).status_code for _ in range(2)] == [200, 429]
    assert ask(services).json() == {"error": "Not validated: all 3 validations of this run are used up."}
    assert services.counts()["validation_calls"] == 3
    services.reset_limits()
    assert ask(services).status_code == 200
    services.close()
    services = opened(calls=3)
    assert [ask(services).status_code for _ in range(3)] == [200, 200, 429]


def test_the_rate_is_limited(opened: Callable[..., RunServices]) -> None:
    services = opened(calls_per_minute=3)
    assert [ask(services).status_code for _ in range(4)] == [200, 200, 200, 429]
    refused = ask(services)
    assert refused.headers["retry-after"] == "20"
    assert refused.json() == {"error": "Not validated: more than 3 validations per minute; try again in 20 seconds."}
    assert [record["verdict"] for record in log(services)] == ["valid"] * 3 + ["refused"] * 2


def test_one_at_a_time(opened: Callable[..., RunServices], check: ScriptedCheck) -> None:
    services = opened()
    check.open.clear()
    with ThreadPoolExecutor(12) as pool:
        asked = [pool.submit(ask, services) for _ in range(12)]
        until(lambda: sum(each.done() for each in asked) == 12 - (service.MAX_WAITING + 1))
        check.open.set()
        codes = [each.result().status_code for each in asked]
    assert check.most_at_once == 1
    assert set(codes) == {200, 429}
    assert codes.count(200) == service.MAX_WAITING + 1


def test_a_file_that_is_too_large(opened: Callable[..., RunServices], check: ScriptedCheck) -> None:
    services = opened(submission_bytes=100_000)
    assert ask(services, b"x" * 100_000).status_code == 200
    answer = ask(services, b"x" * 300_000)
    assert answer.json() == {"result": "Submission invalid! the file is larger than 97.66 KiB"}
    form = [b"--b\r\n", b'Content-Disposition: form-data; name="file"; filename="s"\r\n\r\n', *[b"x" * 50_000] * 20]
    headers = {"content-type": "multipart/form-data; boundary=b"}
    url = f"{services.validation_url}/validate"
    assert "larger" in plain_http.post(url, content=iter(form), headers=headers, timeout=30).text
    assert len(check.seen) == 1
    assert not list((services.files()["validation.jsonl"].parent).glob("upload-*"))


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"content-type": "application/json"}, b"{}"),
        ({"content-type": "multipart/form-data"}, b"x"),
        ({"content-type": "multipart/form-data; boundary=b"}, b"no form at all"),
        ({"content-type": "multipart/form-data; boundary=b"}, b"--b\r\n" + b"x" * 100_000),
        (
            {"content-type": "multipart/form-data; boundary=b"},
            b'--b\r\nContent-Disposition: form-data; name="other"\r\n\r\n1\r\n--b--\r\n',
        ),
        (
            {"content-type": "multipart/form-data; boundary=b"},
            b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\n' + b"1" * 200_000 + b"\r\n--b--\r\n",
        ),
        (
            {"content-type": "multipart/form-data; boundary=b"},
            b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n1\r\n' * 3 + b"--b--\r\n",
        ),
    ],
)
def test_what_is_no_form_with_a_file(
    opened: Callable[..., RunServices], check: ScriptedCheck, headers: dict[str, str], body: bytes
) -> None:
    services = opened()
    response = plain_http.post(f"{services.validation_url}/validate", content=body, headers=headers, timeout=30)
    assert response.status_code == 400
    assert "error" in response.json()
    assert check.seen == []


def test_the_name_of_the_file_means_nothing(
    opened: Callable[..., RunServices], check: ScriptedCheck, tmp_path: Path
) -> None:
    services = opened()
    for name in ("../../../evil.csv", "/etc/passwd", "a\x00b", "x" * 500):
        url = f"{services.validation_url}/validate"
        assert plain_http.post(url, files={"file": (name, GOOD)}, timeout=30).json() == {
            "result": "Submission is valid."
        }
    assert sorted(path.name for path in (tmp_path / "run" / RECORDS).iterdir()) == ["services.json", "validation.jsonl"]


def test_a_client_that_is_slow_or_gone(
    opened: Callable[..., RunServices], check: ScriptedCheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "UPLOAD_SECONDS", 0.5)
    services = opened()
    host, port = str(services.validation_url).removeprefix("http://").split(":")
    head = b"POST /validate HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=b\r\n"
    with socket.create_connection((host, int(port)), timeout=60) as slow:
        slow.sendall(head + b"Content-Length: 1000\r\n\r\n--b\r\n")
        assert b" 400 " in slow.recv(1000)
    with socket.create_connection((host, int(port)), timeout=60) as gone:
        gone.sendall(head + b"Content-Length: 1000\r\n\r\n--b\r\n")
    assert ask(services).status_code == 200
    assert check.seen == [GOOD]


@pytest.mark.parametrize("path", ["/validate/../x", "/grade", "/validate/", "/", "/%2e%2e/answers"])
def test_there_is_nothing_else(opened: Callable[..., RunServices], path: str) -> None:
    services = opened()
    assert plain_http.post(f"{services.validation_url}{path}").status_code in (404, 405)
    assert plain_http.get(f"{services.validation_url}/validate").status_code == 405


def test_the_check_is_closed_with_the_service(opened: Callable[..., RunServices], check: ScriptedCheck) -> None:
    opened().close()
    assert check.closed == 1


def test_by_unix_socket(opened: Callable[..., RunServices], tmp_path: Path) -> None:
    folder = tmp_path / "sockets"
    folder.mkdir()
    for _ in range(2):  # the second time there is a stale one
        services = opened(ServiceAddresses(folder, "http://services:5000", "http://services:8000"))
        assert services.validation_url == "http://services:5000"
        assert (folder / "validation.sock").stat().st_mode & 0o777 == 0o666
        with httpx.Client(transport=httpx.HTTPTransport(verify=False, uds=str(folder / "validation.sock"))) as client:
            answer = client.post("http://services:5000/validate", files={"file": GOOD})
            assert answer.json() == {"result": "Submission is valid."}


def test_a_port_that_was_taken_meanwhile(
    opened: Callable[..., RunServices], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("sandbox.serving.PORT_SECONDS", 0.2)
    services = opened()
    port = int(str(services.validation_url).rpartition(":")[2])
    services.close()
    with socket.create_server(("127.0.0.1", port)):
        again = opened()
        assert not str(again.validation_url).endswith(f":{port}")
    assert f"port {port} is taken" in caplog.text
    assert ask(again).status_code == 200


@pytest.mark.parametrize("with_curl", [True, False])
def test_the_script(
    opened: Callable[..., RunServices],
    check: ScriptedCheck,
    tmp_path: Path,
    make_spec: Callable[..., RunSpec],
    with_curl: bool,
) -> None:
    import dataclasses
    import sys

    from sandbox.world.layout import lay_out

    if with_curl and not shutil.which("curl"):
        pytest.skip("curl is not installed")
    services = opened(submission_bytes=2_000_000)
    lay_out(dataclasses.replace(make_spec("true"), validation_url=services.validation_url), tmp_path / "home")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "cat", *(["curl"] if with_curl else [])):
        (tools / name).symlink_to(str(shutil.which(name)))
    env = {"PATH": str(tools), "MLEBENCH_PYTHON": sys.executable, "http_proxy": "http://127.0.0.1:9"}
    script = tmp_path / "home" / "validate_submission.sh"

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["/bin/sh", str(script), *arguments]
        return subprocess.run(command, env=env, capture_output=True, text=True, cwd=tmp_path, timeout=120)

    odd = tmp_path / 'my, "odd"; name=1.csv'
    odd.write_bytes(GOOD)
    assert json.loads(run(odd.name).stdout) == {"result": "Submission is valid."}
    (tmp_path / "large.csv").write_bytes(GOOD * 80_000)
    assert json.loads(run("large.csv").stdout) == {"result": "Submission is valid."}
    (tmp_path / "larger.csv").write_bytes(GOOD * 300_000)
    larger = run("larger.csv")
    assert "larger than" in larger.stdout
    assert larger.returncode == 1, "an invalid file"
    assert check.seen == [GOOD, GOOD * 80_000]
    assert run("none.csv").stdout == "Submission invalid! There is no file none.csv.\n"
    assert run().returncode == 1, "by default the submission, which does not exist yet"
    (tmp_path / "home" / "submission" / "submission.csv").write_bytes(GOOD)
    without = run()
    assert (without.returncode, json.loads(without.stdout)) == (0, {"result": "Submission is valid."})
    services.close()
    assert run(odd.name).returncode == 2, "not checked"


def test_closing_ends_a_question_under_way(opened: Callable[..., RunServices], check: ScriptedCheck) -> None:
    services = opened()
    check.open.clear()
    problems: list[Exception] = []

    def question() -> None:
        try:
            ask(services)
        except httpx.HTTPError as error:
            problems.append(error)

    thread = threading.Thread(target=question)
    thread.start()
    until(lambda: check.at_once == 1)
    began = time.monotonic()
    services.close()
    thread.join(60)
    assert time.monotonic() - began < 60
    assert not thread.is_alive()
    assert check.seen == []  # the check has not been waited for
    check.open.set()


def test_form_parts_are_bounded_apart_from_the_file(opened: Callable[..., RunServices]) -> None:
    services = opened()
    url = f"{services.validation_url}/validate"
    parts = {"extra": "x" * (upload.FORM_BYTES + 10)}
    assert plain_http.post(url, files={"file": GOOD}, data=parts, timeout=30).status_code == 400
