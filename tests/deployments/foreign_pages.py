"""Pages of others in the operator's browser, which attack the servers of this machine."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.grading.page.browser import Browser

NAME = "of-a-page"
"""Of the flows and flow runs that the attacks create."""
EVIL = "evil.test"
"""A name of others, which resolves to this machine in `browser`."""
_ATTACK = """
(async () => {
  const [base, path, body, login] = %s;
  // The browser may hold back what it will not send: nothing is waited for longer than this.
  const soon = () => AbortSignal.timeout(5000);
  const ask = async (options) => {
    try { await fetch(base + path, {method: "POST", signal: soon(), ...options}) } catch {}
  };
  const json = {"Content-Type": "application/json"};
  await ask({mode: "no-cors", body: new Blob([body])});                 // without a content type
  await ask({mode: "no-cors", body: body, headers: {"Content-Type": "text/plain"}});
  await ask({mode: "no-cors", credentials: "include", body: new Blob([body])});
  await ask({body: body, headers: json});                               // asks first, with OPTIONS
  await ask({body: body, headers: {...json, Authorization: login}});    // had it learned the login
  for (const method of ["GET", "PUT", "PATCH", "DELETE"])
    try { await fetch(base + path, {method, signal: soon()}) } catch {}
  await new Promise((done) => {
    const frame = document.createElement("iframe");
    frame.name = "answer";
    document.body.appendChild(frame);
    frame.onload = done;
    setTimeout(done, 5000);
    const form = document.body.appendChild(document.createElement("form"));
    const field = form.appendChild(document.createElement("input"));
    [field.name, field.value] = [body.slice(0, -1) + ', "pad": "', '"}'];
    [form.action, form.method, form.enctype, form.target] = [base + path, "POST", "text/plain", "answer"];
    form.submit();
  });
  return await new Promise((done) => {
    const socket = new WebSocket(base.replace("http", "ws") + "/api/events/in", "prefect");
    socket.onopen = () => done("opened");
    socket.onerror = () => done("refused");
    setTimeout(() => done("silent"), 10000);
  });
})()
"""


def browser(home: Path) -> Browser:
    """A browser in which a name of others resolves to this machine, at once or as if it had been resolved anew."""
    return Browser(home, f"--host-resolver-rules=MAP {EVIL} 127.0.0.1")


@contextlib.contextmanager
def foreign_server() -> Iterator[int]:
    """The port of a server with a page of others, on this machine."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<body>A page of others.</body>")

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def attack(of: Browser, page: str, base: str, path: str, body: Any, login: str) -> tuple[set[int], str]:
    """Have a page send what it can to a path of a server; the statuses that it got, and whether a web socket opened."""
    of.events.clear()
    of.call("Page.navigate", url=page)
    of.wait_for(lambda: of.run("location.href + document.readyState") == page + "complete")
    script = _ATTACK % json.dumps([base, path, json.dumps(body), login])
    answer = of.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
    got = [each["params"]["response"] for each in of.events if each.get("method") == "Network.responseReceived"]
    return {each["status"] for each in got if each["url"] == base + path}, answer["result"]["value"]
