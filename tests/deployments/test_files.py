"""The server of reports and files: what agents left is text, and nothing outside of its folders is served."""

from __future__ import annotations

import http.client
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest

from common.guard import HOST, basic, names
from deployments.files import _Handler
from tests.grading.page.browser import Browser

LOGIN = "mlebench:secret login"
ACTIVE = "<script>document.title = 'executed'</script>"
SVG = f'<svg xmlns="http://www.w3.org/2000/svg">{ACTIVE}</svg>'
EVIL = "\u202e<img src=x onerror=alert(1)>.html"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    root = tmp_path / "store"
    logs = root / "runs" / "group" / "digits" / "0" / "logs"
    logs.mkdir(parents=True)
    for name in ("a.html", "index.html", "a.xhtml", "report.html", "a.js", "a.pdf", EVIL):
        (logs / name).write_text(ACTIVE)
    for name in ("a.svg", "a.xml"):
        (logs / name).write_text(SVG)
    report = root / "reports" / "group"
    report.mkdir(parents=True)
    for name in ("report.html", "other.html", "index.html", "report.html.svg"):
        (report / name).write_text(ACTIVE)
    (root / "prepared").mkdir()
    (root / "prepared" / "answers.csv").write_text("secret")
    (logs / "link.csv").symlink_to(root / "prepared" / "answers.csv")
    (logs / "folder").symlink_to(root / "prepared")
    (logs / "loop").symlink_to("loop")
    (report / "link").symlink_to("/etc")
    (logs / "inside").symlink_to("a.html")
    os.mkfifo(logs / "pipe")
    return root


@pytest.fixture
def port(store: Path) -> Iterator[int]:
    server = ThreadingHTTPServer((HOST, 0), partial(_Handler, server_names=(), credential=LOGIN))
    known = names(server.server_port)
    server.RequestHandlerClass = partial(_Handler, directory=str(store), server_names=known, credential=LOGIN)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def get(port: int, path: str, **headers: str) -> tuple[int, dict[str, str], str]:
    with closing(http.client.HTTPConnection(HOST, port, timeout=30)) as connection:
        connection.request("GET", path, headers={"Authorization": basic(LOGIN), **headers})
        answer = connection.getresponse()
        fields = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, fields, answer.read().decode("utf-8", "surrogateescape")


LOGS = "/runs/group/digits/0/logs"


@pytest.mark.parametrize(
    "path",
    [f"{LOGS}/{quote(name)}" for name in ("a.html", "a.xhtml", "report.html", "a.js", "a.pdf", "a.svg", "a.xml", EVIL)]
    + [f"{LOGS}/", f"{LOGS}/inside", "/reports/group/other.html", "/reports/group/", "/reports/group/report.html.svg"]
    + [f"{LOGS}/a.html?/reports/group/report.html", f"{LOGS}/a.html#/reports/group/report.html"],
)
def test_what_agents_leave_is_text(port: int, path: str) -> None:
    status, fields, _ = get(port, path)
    assert (status, fields["content-type"]) == (200, "text/plain; charset=utf-8")
    assert fields["x-content-type-options"] == "nosniff"
    assert "sandbox" in fields["content-security-policy"]
    assert get(port, path, Range="bytes=0-3")[:1] == (200,), "a part has the headers of the whole"


def test_a_report_is_a_page(port: int) -> None:
    status, fields, text = get(port, "/reports/group/report.html")
    assert (status, fields["content-type"], text) == (200, "text/html; charset=utf-8", ACTIVE)
    assert fields["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    [
        f"{LOGS}/{name}"
        for name in ("link.csv", "folder/answers.csv", "folder/", "loop", "pipe", "x" * 300, "%00", "gone")
    ]
    + ["/prepared/answers.csv", "/reports/group/link/passwd", "/runs/../prepared/answers.csv", "//runs/../prepared/"]
    + ["/runs/%2e%2e/prepared/answers.csv", "/runs/..%2fprepared/answers.csv", "/", "/Runs/"],
)
def test_nothing_outside_is_served(port: int, path: str) -> None:
    status, _, text = get(port, path)
    assert status == 404
    assert "secret" not in text


def test_what_is_no_request_is_answered(port: int) -> None:
    with socket.create_connection((HOST, port), timeout=30) as connection:
        connection.sendall(b"GET / HTTP/9.9\r\n\r\n")
        assert b"505" in connection.makefile("rb").read()


def test_a_list_of_files_with_hostile_names_is_a_list_without_effect(port: int, store: Path) -> None:
    (store / "runs" / "group" / "digits" / "0" / "logs" / "index.html").unlink()
    status, fields, text = get(port, f"{LOGS}/")
    assert (status, fields["x-content-type-options"]) == (200, "nosniff")
    assert fields["content-security-policy"] == "sandbox; default-src 'none'; frame-ancestors 'none'"
    assert "<img" not in text


@pytest.mark.service("chromium")
def test_a_browser_executes_nothing_that_an_agent_left(port: int, store: Path, tmp_path: Path) -> None:
    browser = Browser(tmp_path / "chromium")
    try:
        browser.call("Network.enable")
        browser.call("Network.setExtraHTTPHeaders", headers={"Authorization": basic(LOGIN)})
        for name in ("a.html", "a.svg", "a.xhtml", "a.xml", "", quote(EVIL)):
            browser.call("Page.navigate", url=f"http://{HOST}:{port}{LOGS}/{name}")
            browser.wait_for(lambda: browser.run("location.protocol + document.readyState") == "http:complete")
            assert browser.run("document.title") != "executed", name
            assert browser.run("document.body.innerText"), "the text is shown"
        browser.call("Page.navigate", url=f"http://{HOST}:{port}/reports/group/report.html")
        browser.wait_for(lambda: browser.run("document.title") == "executed")
    finally:
        browser.close()
