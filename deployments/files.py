"""Serve the reports and the files of runs of a local store, so that links in the Prefect UI open in a browser.

    python -m deployments.files --store URL --socket FD --credential FILE

Browsers do not follow links from pages of the UI to file:// addresses. Only clients on this machine that know the login
in FILE are served. They can read what lies below `reports/` and `runs/`, but neither datasets nor answers.
"""

from __future__ import annotations

import argparse
import socket
from collections.abc import Collection
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from common.guard import authorized, names, refusal
from storage.store import Store, browser_type, is_page

SERVED = ("reports", "runs")
"""Folders of the store that are served."""


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, *arguments: Any, server_names: Collection[str], credential: str, **options: Any) -> None:
        self._server_names, self._credential = server_names, credential
        super().__init__(*arguments, **options)

    def parse_request(self) -> bool:
        """Read a request, and refuse it if it comes from a foreign page or does not have the login."""
        if not super().parse_request():
            return False
        if reason := refusal(self.command, self.headers.items(), self._server_names):
            self.send_error(403, explain=f"This request is refused: {reason}.")
        elif not authorized(self.headers.get("Authorization"), self._credential):
            self.send_error(401)
        else:
            return True
        return False

    def send_head(self) -> Any:
        path = unquote(urlsplit(self.path).path)
        if (
            path.split("/")[1:2] not in [[folder] for folder in SERVED]
            or ".." in path.split("/")
            or not self._is_inside()
        ):
            self.send_error(404)
            return None
        return super().send_head()

    def send_response(self, code: int, message: str | None = None) -> None:
        super().send_response(code, message)
        if code == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="mlebench"')

    def _is_inside(self) -> bool:
        """Whether the file or folder exists, and no link leads out of the folders that are served."""
        served_folders = [Path(self.directory, folder).resolve() for folder in SERVED]
        try:
            requested = Path(self.translate_path(self.path)).resolve(strict=True)
        except (OSError, ValueError, RuntimeError):  # it does not exist, its name is invalid, or links form a circle
            return False
        return any(requested.is_relative_to(top) for top in served_folders) and (
            requested.is_file() or requested.is_dir()
        )

    @property
    def _relative(self) -> str:
        return unquote(urlsplit(getattr(self, "path", "")).path).strip("/")  # invalid requests have none

    def guess_type(self, path: Any) -> str:
        """Reports are shown as pages, and everything that agents leave as text."""
        return browser_type(self._relative)

    def end_headers(self) -> None:
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        if not is_page(self._relative):  # lists of files are pages, too, and agents choose the names
            self.send_header("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def main(arguments: list[str] | None = None) -> int:
    """Serve until a signal ends this process; returns the exit code."""
    parser = argparse.ArgumentParser(description="Serve reports and the files of runs of a local store.")
    parser.add_argument("--store", required=True, help="root of the store, a local directory")
    parser.add_argument("--socket", type=int, required=True, metavar="FD", help="inherited socket on which to listen")
    parser.add_argument("--credential", type=Path, required=True, help="file with the login USER:PASSWORD")
    options = parser.parse_args(arguments)
    folder = Store(options.store).local()
    if folder is None:
        parser.error(f"{options.store} is not a local directory")
    folder.mkdir(parents=True, exist_ok=True)
    listener = socket.socket(fileno=options.socket)
    address = listener.getsockname()
    server_names, credential = names(address[1]), options.credential.read_text().strip()
    handler = partial(_Handler, directory=str(folder), server_names=server_names, credential=credential)
    server = ThreadingHTTPServer(address, handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listener
    server.serve_forever()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
