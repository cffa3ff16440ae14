"""Kaggle in small: the API on one port, the storage that downloads are redirected to on another.

As on the real one, every call is a POST to /api/v1/<service>/<method> with JSON; a download answers with a redirect to
a signed address on another host, which serves ranges under an entity tag. Faults are scripted per competition and used
up one request after the other; what was asked is recorded.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections import defaultdict, deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LAST_MODIFIED = "Wed, 21 Oct 2015 07:28:00 GMT"
RULES = "You must accept this competition's rules before you'll be able to download files."


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one request; `at` says with which of the two hosts."""

    at: str = "storage"  # or "api"
    status: int | None = None
    message: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None  # close the connection after so many bytes
    stall: int | None = None  # send so many bytes, then nothing
    drip: int | None = None  # send pieces of so many bytes ...
    pause: float = 0.0  # ... with so many seconds between them
    claim: int | None = None  # add to Content-Length
    close: bool = False  # close the connection without a word


@dataclass(frozen=True)
class Request:
    """A request as it came in."""

    host: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class KaggleServer:
    """Two HTTP servers on this machine: the API on `port`, or a free one, and the storage on a free one."""

    def __init__(
        self,
        token: str = "planted-token-1f9a",
        username: str = "planted",
        key: str = "planted-key-77c3",
        port: int = 0,
    ):
        self.token, self.username, self.key = token, username, key
        self.archives: dict[str, bytes] = {}
        self.tags: dict[str, str | None] = {}  # None: the storage serves neither entity tag nor ranges
        self.refused: dict[str, str] = {}  # id -> message of its 403
        self.teams: dict[str, list[dict[str, Any]]] = {}
        self.pages: dict[str, list[dict[str, Any]]] = {}
        self.about: dict[str, dict[str, Any]] = {}  # id -> fields of Kaggle's answer
        self.files: dict[str, list[dict[str, Any]]] = {}
        self.kernels: dict[str, list[dict[str, Any]]] = {}
        self.sources: dict[str, str] = {}  # kernel ref, or for an older version ref@version -> source
        self.versions: dict[str, int] = {}  # kernel ref -> newest version; by default 3
        self.faults: dict[str, deque[Fault]] = defaultdict(deque)
        self.requests: list[Request] = []
        self.released = threading.Event()  # ends stalls
        self.together: threading.Event | None = None  # the first archive waits until a second is asked for as well
        self.active = self.most = 0  # archives on their way: now, and at most
        self.lock = threading.Lock()
        self.api = _serve(_Api, self, port)
        self.storage = _serve(_Storage, self)
        # Different names for one machine: a client must not send credentials on to the storage.
        self.url = f"http://localhost:{self.api.server_port}"
        self.storage_url = f"http://127.0.0.1:{self.storage.server_port}"

    def close(self) -> None:
        """Stop both."""
        self.released.set()
        for server in (self.api, self.storage):
            server.shutdown()
            server.server_close()

    def fault(self, competition_id: str, host: str) -> Fault | None:
        """The next fault for this host, used up."""
        with self.lock:
            queue = self.faults[competition_id]
            return queue.popleft() if queue and queue[0].at == host else None

    def asked(self, host: str, path: str = "") -> list[Request]:
        """Requests to a host whose path contains `path`."""
        with self.lock:
            return [request for request in self.requests if request.host == host and path in request.path]

    def tag(self, competition_id: str) -> str | None:
        """The entity tag of an archive."""
        default = f'"{hashlib.md5(self.archives[competition_id]).hexdigest()}"'
        return self.tags.get(competition_id, default)


def _serve(handler: type[BaseHTTPRequestHandler], owner: KaggleServer, port: int = 0) -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", port), type(handler.__name__, (handler,), {"owner": owner}))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    return server


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: KaggleServer
    host = ""

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def note(self, body: dict[str, Any]) -> None:
        request = Request(self.host, self.path, dict(self.headers), body)
        with self.owner.lock:
            self.owner.requests.append(request)

    def reply(self, status: int, content: bytes, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def reply_json(self, value: Any) -> None:
        self.reply(200, json.dumps(value).encode())

    def error(self, code: int, message: str, headers: dict[str, str] | None = None) -> None:
        self.reply(code, json.dumps({"code": code, "message": message}).encode(), **(headers or {}))

    def failed(self, fault: Fault | None) -> bool:
        """Carry out a fault of the whole request; returns whether that was it."""
        if fault is not None and fault.close:
            self.close_connection = True
            return True
        if fault is not None and fault.status:
            self.error(fault.status, fault.message, fault.headers)
            return True
        return False


class _Api(_Handler):
    host = "api"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        self.note(body)
        owner = self.owner
        basic = base64.b64encode(f"{owner.username}:{owner.key}".encode()).decode()
        if self.headers.get("Authorization") not in (f"Bearer {owner.token}", f"Basic {basic}"):
            self.error(401, "Unauthenticated")
            return
        name = body.get("competitionName") or body.get("competition") or ""
        if self.failed(owner.fault(name or f"{body.get('userName')}/{body.get('kernelSlug')}", "api")):
            return
        method = getattr(self, self.path.rsplit("/", 1)[-1], None)
        if method is None:
            self.error(404, "Not found")
        else:
            method(name, body)

    def DownloadDataFiles(self, name: str, _body: dict[str, Any]) -> None:
        if name in self.owner.refused:
            self.error(403, self.owner.refused[name])
        elif name not in self.owner.archives:
            self.error(404, "Competition not found")
        else:
            self.send_response(302)
            self.send_header("Location", f"{self.owner.storage_url}/{name}.zip?Signature=planted-signature-5d0e")
            self.send_header("Content-Length", "0")
            self.end_headers()

    def GetLeaderboard(self, name: str, body: dict[str, Any]) -> None:
        teams, start = self.owner.teams.get(name, []), int(body.get("pageToken") or 0)
        end = start + min(body["pageSize"], 50)
        self.reply_json({"submissions": teams[start:end], "nextPageToken": str(end) if end < len(teams) else ""})

    def GetCompetition(self, name: str, _body: dict[str, Any]) -> None:
        if name not in self.owner.about:
            self.error(404, "Competition not found")
        else:
            self.reply_json(self.owner.about[name])

    def ListDataFiles(self, name: str, body: dict[str, Any]) -> None:
        files, start = self.owner.files.get(name, []), int(body.get("pageToken") or 0)
        end = start + min(body["pageSize"], 2)
        self.reply_json({"files": files[start:end], "nextPageToken": str(end) if end < len(files) else ""})

    def ListCompetitionPages(self, name: str, _body: dict[str, Any]) -> None:
        self.reply_json({"pages": self.owner.pages.get(name, [])})

    def ListKernels(self, name: str, body: dict[str, Any]) -> None:
        assert body["sortBy"] == "VOTE_COUNT"
        assert body["language"] == "python"
        kernels = sorted(self.owner.kernels.get(name, []), key=lambda kernel: -kernel["totalVotes"])
        start = (body["page"] - 1) * 2
        self.reply_json({"kernels": kernels[start : start + 2]})

    def GetKernel(self, _name: str, body: dict[str, Any]) -> None:
        ref, label = f"{body['userName']}/{body['kernelSlug']}", body.get("versionLabel")
        named = f"{ref}@{label}" if label else ref
        if named not in self.owner.sources:
            self.error(403, "Permission 'kernels.get' was denied")
            return
        blob = {"source": self.owner.sources[named], "language": "python", "kernelType": "notebook"}
        version = self.owner.versions.get(ref, 3)
        self.reply_json({"metadata": {"ref": ref, "currentVersionNumber": version}, "blob": blob})


class _Storage(_Handler):
    host = "storage"

    def do_GET(self) -> None:
        self.note({})
        owner = self.owner
        with owner.lock:
            owner.active += 1
            owner.most = max(owner.most, owner.active)
            if owner.together and owner.active > 1:
                owner.together.set()
        try:
            if owner.together:
                owner.together.wait(30)
            self._archive()
        finally:
            with owner.lock:
                owner.active -= 1

    def _archive(self) -> None:
        name = self.path.split("?")[0].strip("/").removesuffix(".zip")
        owner, fault = self.owner, self.owner.fault(self.path.split("?")[0].strip("/").removesuffix(".zip"), "storage")
        if self.failed(fault):
            return
        content, tag = owner.archives[name], owner.tag(name)
        asked = re.match(r"bytes=(\d+)-$", self.headers.get("Range", "")) if tag else None
        start = int(asked[1]) if asked else 0
        if start and start >= len(content):
            self.error(416, "Range not satisfiable")
            return
        fault = fault or Fault()
        body = content[start:]
        self.send_response(206 if asked else 200)
        self.send_header("Content-Type", "application/zip")
        self.send_header("Content-Length", str(len(body) + (fault.claim or 0)))
        if tag:
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("ETag", tag)
            self.send_header("Last-Modified", LAST_MODIFIED)
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        self._send(body, fault)

    def _send(self, body: bytes, fault: Fault) -> None:
        end = next((limit for limit in (fault.cut, fault.stall) if limit is not None), len(body))
        step = fault.drip or 1 << 16
        try:
            for at in range(0, min(end, len(body)), step):
                self.wfile.write(body[at : min(at + step, end)])
                if fault.pause:
                    self.owner.released.wait(fault.pause)
        except OSError:  # the client has gone
            self.close_connection = True
            return
        if fault.stall is not None:
            self.owner.released.wait()
        if fault.cut is not None or fault.stall is not None or fault.claim:
            self.close_connection = True
