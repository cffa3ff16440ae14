"""A language model with a script, on loopback, for agents of others."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ScriptedModel(BaseHTTPRequestHandler):
    """Remembers what it is asked, and answers what `answer` says."""

    asked: list[dict[str, Any]]

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body of the answer to a request, which is the last one asked."""
        raise NotImplementedError

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.asked.append({"body": body, "key": self.headers["authorization"], "path": self.path})
        payload = json.dumps(self.answer(body)).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving(model: type[ScriptedModel]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Its base URL, and what it is asked."""
    asked: list[dict[str, Any]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Model", (model,), {"asked": asked}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        server.server_close()
