"""Notifications by the automations of a real server, received by a real web server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.deployments.fleet import Fleet
from tests.deployments.installation import ROOT, until_served

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.service("postgres")]


class Receiver:
    """Remembers the messages that are posted to `url`."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        messages = self.messages

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                messages.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(404 if self.path == "/gone" else 200)
                self.end_headers()

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def about(self, *words: str) -> list[dict[str, Any]]:
        return [each for each in self.messages if all(word in each["subject"] + each["body"] for word in words)]


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    started = Receiver()
    yield started
    started.server.shutdown()


@pytest.fixture(scope="module")
def told(fleet: Fleet, receiver: Receiver) -> Fleet:
    """The server, set up to notify the receiver."""
    output = fleet.mlebench("notify", "--webhook", receiver.url)
    assert len(output.splitlines()) == 3, output
    assert receiver.about("notifications are set up")
    return fleet


def run_python(fleet: Fleet, code: str) -> None:
    subprocess.run([sys.executable, "-c", code], env=fleet.env, cwd=ROOT, check=True, timeout=120)


def automations(fleet: Fleet) -> list[str]:
    return sorted(each["name"] for each in fleet.api("/automations/filter", {}))


def test_a_finished_group(told: Fleet, receiver: Receiver) -> None:
    told.mlebench("run", "-c", "digits", "--agent", "dummy", "--run-group", "announced")
    (message,) = until_served("a message", lambda: receiver.about("announced"), 60)
    assert message["subject"] == "Run group announced has finished: 1 run, 0 failed"
    assert "reports/announced/report.html" in message["body"]


def test_a_nightly_whose_scores_moved(told: Fleet, receiver: Receiver) -> None:
    run_python(
        told,
        "from flows.fleet.notifications import *\n"
        "announce(NIGHTLY_FAILED, 'mlebench.group.n', Message('The nightly n failed', '1 scores moved since m: x'))",
    )
    (message,) = until_served("a message", lambda: receiver.about("The nightly n failed"), 60)
    assert message["body"] == "1 scores moved since m: x"


def test_a_host_that_falls_silent(told: Fleet, receiver: Receiver) -> None:
    worker = told.worker("greta", 1)
    host = told.host("greta")
    until_served("its event", lambda: events(told, "mlebench.host.alive", host), 60)
    worker.terminate()
    worker.wait(60)
    until_served("its farewell", lambda: events(told, "mlebench.host.stopped", host), 60)
    setup = "import flows.fleet.notifications as n\nn.SILENT_SECONDS = 10\n"
    run_python(
        told,
        "from prefect.blocks.core import Block\n" + setup + "n.set_up(Block.load('custom-webhook/mlebench')."
        "_block_document_id)\n"
        "for number in range(50):\n"
        "    n.announce_host(f'ida-{number}', n.HOST_STOPPED, n.announce_host(f'ida-{number}', n.HOST_ALIVE))\n"
        "n.announce_host('hugo', n.HOST_ALIVE)",
    )

    def silent() -> list[str]:
        return [message["body"].split()[3] for message in receiver.about("fallen silent")]

    until_served("its message", lambda: "mlebench.host.hugo" in silent(), 120)  # the last of them
    assert silent() == ["mlebench.host.hugo"]


def events(fleet: Fleet, name: str, host: str) -> list[Any]:
    wanted = {"filter": {"event": {"name": [name]}, "resource": {"id": [f"mlebench.host.{host}"]}}}
    found: list[Any] = fleet.api("/events/filter", wanted)["events"]
    return found


def test_it_can_be_set_up_again_and_removed(told: Fleet, receiver: Receiver) -> None:
    before = automations(told)
    told.mlebench("notify", "--block", "custom-webhook/mlebench")
    assert automations(told) == before
    assert "3 notifications would be removed" in told.mlebench("notify", "--off", "--dry-run")
    assert "3 notifications removed" in told.mlebench("notify", "--off")
    assert len(automations(told)) == len(before) - 3
    assert "no block" in told.mlebench("notify", "--block", "custom-webhook/none", code=1)
    output = told.mlebench("notify", "--webhook", f"{receiver.url}/gone", code=1)
    assert "could not be sent, nothing was set up" in output
    assert "Traceback" not in output
    assert len(automations(told)) == len(before) - 3


def test_mail_needs_a_sender_and_a_key(fleet: Fleet) -> None:
    env = {key: value for key, value in {**os.environ, **fleet.env}.items() if key != "SENDGRID_API_KEY"}
    command = [sys.executable, "-m", "flows.cli", "notify", "--mail", "me@example.com"]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "SENDGRID_API_KEY" in done.stderr
