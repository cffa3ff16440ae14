"""What submissions and agents said, in both versions of Prefect's UI in a browser: shown, and nothing is fetched."""

from __future__ import annotations

import http.server
import json
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from prefect import flow, get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey
from prefect.logging import get_run_logger
from prefect.settings import PREFECT_API_URL, temporary_settings

from common import starting
from common.errors import UserError
from common.progress import Event
from flows.watching.artifacts import _link
from flows.watching.event_log import EventLog
from flows.watching.outcome import Outcome, show_outcomes
from tasks.wiring.artifacts import show_progress, show_table
from tests.grading.page.browser import Browser
from tests.prefect_home import make_home
from tests.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
def fetched() -> Iterator[tuple[str, list[str]]]:
    """The address of a foreign server, and the paths that it was asked for."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"//127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


@pytest.fixture
def ui(tmp_path: Path, prefect_database: Path) -> Iterator[str]:
    """The address of a server with a UI, which this process uses as well."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    home = make_home(tmp_path / "prefect", prefect_database)
    command = starting.command("prefect", "server", "start", "--no-services", "--port", url.rpartition(":")[2])
    environment = {
        **os.environ,
        "PREFECT_HOME": str(home),
        "PREFECT_UI_API_URL": f"{url}/api",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "0",
    }
    with (tmp_path / "server.log").open("wb") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        with temporary_settings({PREFECT_API_URL: f"{url}/api"}), get_client(sync_client=True) as client:
            until(lambda: client.api_healthcheck() is None, 120, what="Prefect's server")
            yield url
    finally:
        server.terminate()
        server.wait(30)


@pytest.mark.service("chromium")
def test_no_foreign_text_is_fetched_or_followed_and_all_of_it_is_shown(
    ui: str, fetched: tuple[str, list[str]], tmp_path: Path
) -> None:
    address, asked = fetched
    pictures = f"![x]({address}/markdown) <img src='{address}/html'>"
    links = f"http:{address}/url [y]({address}/link) www.foreign.example me@foreign.example"
    message = f"column {pictures} {links} `z` _w_ is not expected | \u202ereversed"

    @flow(name="foreign")
    def foreign() -> None:
        EventLog(get_run_logger()).log(Event("digits", "failed", message))
        show_outcomes("outcomes", [Outcome("digits", "failed", message)])
        show_table("results", [{"message": message, message: 1}], message)
        show_progress(50.0, message)
        _link("link", f"{ui}/of-ours", "Report", message)
        raise UserError(message)

    run = foreign(return_state=True)
    told = str(run.message)
    assert "\u202e" not in told
    with get_client(sync_client=True) as client:
        (flow_run,) = client.read_flow_runs()
        made = client.read_artifacts(artifact_filter=ArtifactFilter(key=ArtifactFilterKey(exists_=True)))
        bars = [each for each in client.read_artifacts() if each.type == "progress"]
    assert {each.key for each in made} == {"outcomes", "results", "link"}
    (with_link,) = (each.id for each in made if each.key == "link")
    pages = {f"artifacts/artifact/{each.id}": "is not expected" for each in [*made, *bars]}
    pages |= {"artifacts/key/results": "is not expected"}
    others = {f"v2/runs/flow-run/{flow_run.id}?tab=Logs": "is not expected"}
    others |= {f"runs/flow-run/{flow_run.id}?tab=Details": "UserError: column"}
    browser = Browser(tmp_path / "chromium")

    def shown(word: str) -> bool:
        return word in (browser.run("document.body.innerText") or "")

    followed: set[str] = set()
    seen: dict[str, str] = {}
    try:
        for page, word in (
            {f"{version}{page}": word for version in ("", "v2/") for page, word in pages.items()} | others
        ).items():
            browser.events.clear()
            browser.call("Page.navigate", url=f"{ui}/{page}")
            browser.wait_for(partial(shown, word), 60)
            if "tab=Details" not in page:  # pages come in pieces
                browser.wait_for(partial(shown, f"<img src='{address}/html'>"), 60)
            if str(with_link) in page:
                browser.wait_for(lambda: browser.run("!!document.querySelector('a[href$=\"/of-ours\"]')"), 60)
            seen[page] = browser.run("document.body.innerText")
            hosts = browser.run(
                "JSON.stringify([...document.querySelectorAll('a,img,iframe')].map((e) => e.href || e.src))"
            )
            if "/of-ours" in hosts:
                followed.add(page.partition("/")[0])
            away = {each for each in json.loads(hosts) if address in each or "foreign.example" in each}
            # The UI makes links of addresses in logs and messages of states, which nobody follows unless they click.
            assert away == set() or "flow-run" in page, page
            assert not [each for each in browser.requests if address in each], page
    finally:
        browser.close()
    assert asked == []
    assert followed == {"artifacts", "v2"}, "a link of ours stays one"
    for page, text in seen.items():
        assert "\u202e" not in text, page
